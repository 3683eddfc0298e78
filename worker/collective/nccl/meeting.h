// Where the members of an NCCL group meet on the host, before an operation and
// after one that failed: a communicator of host memory over the same group. Its
// errors come out as if the operation itself had said them:
//
//   NcclMeeting meeting(std::move(gloo));
//   RETURN_IF_ERROR(meeting.All({.name = "gradients", .timeout = left}));
//   // "rank 3 did not come (rank 0 waited 1.5s)"
#ifndef TROUPE_WORKER_COLLECTIVE_NCCL_MEETING_H_
#define TROUPE_WORKER_COLLECTIVE_NCCL_MEETING_H_

#include <memory>

#include "absl/status/status.h"
#include "worker/collective/communicator.h"

namespace troupe {

// One thread at a time, but for Abort.
class NcclMeeting {
 public:
  explicit NcclMeeting(std::unique_ptr<Communicator> host);

  // Returns once all members have come. Errors are the communicator's: who did
  // not come, died or aborted (MissingRank), without the name of the group.
  absl::Status All(const CommOptions& options);
  // Returns once `peer`, an index in the group, has come to meet this rank.
  absl::Status With(int peer, const CommOptions& options);
  // Once both have come, who may be one: each by With, or by Between.
  struct Peers {
    int to;
    int from;
  };
  absl::Status Between(const Peers& peers, const CommOptions& options);

  void Abort(const absl::Status& why) { host_->Abort(why); }

 private:
  absl::Status Shift(const Peers& peers, const CommOptions& options);

  const std::unique_ptr<Communicator> host_;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_COLLECTIVE_NCCL_MEETING_H_
