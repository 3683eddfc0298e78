// What the errors of communicators say (communicator.h, "Errors"):
//
//   group data-0: all-reduce of gradients of unit 3: rank 2 did not come
//   (rank 0 waited 1.5s)
#ifndef TROUPE_WORKER_COLLECTIVE_CALL_ERROR_H_
#define TROUPE_WORKER_COLLECTIVE_CALL_ERROR_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"

namespace troupe {

// "all-reduce of gradients of unit 3"; `name` may be empty.
std::string CallWords(absl::string_view operation, absl::string_view name);

// A failed call, with its group and what it was, once: where one communicator
// is made of another, that one has said it already.
absl::Status InCall(const absl::Status& status, absl::string_view group,
                    absl::string_view call_words);

// A peer that broke a call. Ranks are global.
struct BlamedPeer {
  int rank = 0;
  absl::StatusCode code = absl::StatusCode::kUnavailable;
  std::string what;      // "did not come", "closed its connection"
  int waiting_rank = 0;  // that waited for it
  absl::Duration waited;
};
absl::Status PeerError(const BlamedPeer& peer);

// The global rank that an error of a communicator blames; nothing for others.
absl::optional<int> MissingRank(const absl::Status& status);

}  // namespace troupe

#endif  // TROUPE_WORKER_COLLECTIVE_CALL_ERROR_H_
