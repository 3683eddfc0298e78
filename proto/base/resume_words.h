// The words that checkpoint.resume takes in place of a path. Both mean the
// newest complete checkpoint of the job's own checkpoint.directory; `auto` also
// means a fresh start where there is no checkpoint yet, so that the same job can
// be submitted again and again until it is done.
#ifndef TROUPE_PROTO_BASE_RESUME_WORDS_H_
#define TROUPE_PROTO_BASE_RESUME_WORDS_H_

#include "absl/strings/string_view.h"

namespace troupe {

inline constexpr absl::string_view kResumeLatest = "latest";
inline constexpr absl::string_view kResumeAuto = "auto";

inline bool IsResumeWord(absl::string_view resume) {
  return resume == kResumeLatest || resume == kResumeAuto;
}

}  // namespace troupe

#endif  // TROUPE_PROTO_BASE_RESUME_WORDS_H_
