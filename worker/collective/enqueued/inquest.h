// The question which member is to blame for what has failed, which the members
// of a group ask each other once, on the host: the one that does not come.
//
//   const auto inquest = std::make_shared<Inquest>(
//       Inquest::Failure{.operation = oldest, .status = noticed}, meeting);
//   const absl::Status status = inquest->Verdict();
//
// Several may ask for the verdict: those that wait for operations of that
// communicator, and for those of others that ended with it.
#ifndef TROUPE_WORKER_COLLECTIVE_ENQUEUED_INQUEST_H_
#define TROUPE_WORKER_COLLECTIVE_ENQUEUED_INQUEST_H_

#include <memory>
#include <mutex>

#include "absl/status/status.h"
#include "worker/collective/enqueued/meeting.h"
#include "worker/collective/enqueued/under_way.h"

namespace troupe {

// Thread-safe.
class Inquest {
 public:
  struct Failure {
    Awaited operation = {};  // that was under way
    absl::Status status = {};
    bool of_device = false;  // this rank's own
  };
  Inquest(Failure failure, std::shared_ptr<HostMeeting> meeting);

  const Failure& failure() const { return failure_; }

  // An error. The first call meets the others, for a tenth of the operation's
  // timeout or some seconds; threads that call meanwhile wait.
  absl::Status Verdict();

  // Nobody is met any more: where nobody has been, the verdict is the failure.
  // The meeting may hold the owner of this.
  void Over();

 private:
  const Failure failure_;
  std::shared_ptr<HostMeeting> meeting_;  // of the first to ask, until it ends
  std::once_flag once_;  // which thread sanitizer knows, of absl's it does not
  absl::Status verdict_;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_COLLECTIVE_ENQUEUED_INQUEST_H_
