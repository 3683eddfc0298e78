// Where the members of a group whose operations are enqueued meet on the host,
// before an operation or after one that failed: a communicator of host memory
// over the same group. Its errors come out as if the operation itself had said
// them:
//
//   HostMeeting meeting(std::move(gloo));
//   RETURN_IF_ERROR(meeting.With({}, {.name = "gradients", .timeout = left}));
//   // "rank 3 did not come (rank 0 waited 1.5s)"
#ifndef TROUPE_WORKER_COLLECTIVE_ENQUEUED_MEETING_H_
#define TROUPE_WORKER_COLLECTIVE_ENQUEUED_MEETING_H_

#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "worker/collective/communicator.h"

namespace troupe {

// Thread-safe; a thread that comes while another meets waits for its turn.
class HostMeeting {
 public:
  explicit HostMeeting(std::unique_ptr<Communicator> host);

  // What an operation of this rank needs, as indices in the group: all; or one
  // to send to, one to receive from, or both, which may be the same.
  struct Peers {
    int to = kNobody;
    int from = kNobody;

    bool all() const { return to == kNobody && from == kNobody; }
  };
  // Returns once they have come: all, or for each transfer the other end of it,
  // which may do several by one operation or one by one. Errors are the
  // communicator's: the member that did not come, died or aborted
  // (MissingRank), without the name of the group.
  absl::Status With(const Peers& peers, const CommOptions& options);

  void Abort(const absl::Status& why) { host_->Abort(why); }

 private:
  absl::Status Shift(const Peers& peers, const CommOptions& options)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  absl::Mutex mutex_;  // held by the thread that meets
  const std::unique_ptr<Communicator> host_;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_COLLECTIVE_ENQUEUED_MEETING_H_
