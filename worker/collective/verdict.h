// Which member broke a group, as a backend finds it out.
#ifndef TROUPE_WORKER_COLLECTIVE_VERDICT_H_
#define TROUPE_WORKER_COLLECTIVE_VERDICT_H_

#include <string>

#include "absl/status/status.h"

namespace troupe {

// code OK: nobody did. Cancelled: Abort was called here.
struct Verdict {
  absl::StatusCode code = absl::StatusCode::kOk;
  int peer = 0;      // the one to blame, index in the group
  std::string what;  // "did not come", "closed its connection"

  bool ok() const { return code == absl::StatusCode::kOk; }
};

}  // namespace troupe

#endif  // TROUPE_WORKER_COLLECTIVE_VERDICT_H_
