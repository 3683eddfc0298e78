#include "worker/collective/enqueued/inquest.h"

#include <algorithm>
#include <utility>

#include "absl/time/time.h"

namespace troupe {
namespace {

// How long the members wait for one another after a failure: as far apart as
// those that waited for one that did not come may be.
absl::Duration PatienceAfter(absl::Duration timeout) {
  return std::min(
      timeout, std::clamp(timeout / 10, absl::Seconds(2), absl::Seconds(30)));
}

// A member that does not come now is to blame, but for an error of this rank's
// own device. The others may know nothing of that, and say nothing by not
// coming, unless they are gone.
absl::Status Ask(const Inquest::Failure& failure, HostMeeting& meeting) {
  const absl::Status met =
      meeting.With(failure.operation.peers,
                   {.name = failure.operation.what,
                    .timeout = PatienceAfter(failure.operation.timeout)});
  if (met.ok() || (failure.of_device && absl::IsDeadlineExceeded(met))) {
    return failure.status;
  }
  return met;
}

}  // namespace

Inquest::Inquest(Failure failure, std::shared_ptr<HostMeeting> meeting)
    : failure_(std::move(failure)), meeting_(std::move(meeting)) {}

absl::Status Inquest::Verdict() {
  std::call_once(once_, [this] { verdict_ = Ask(failure_, *meeting_); });
  return verdict_;
}

void Inquest::Over() {
  std::call_once(once_, [this] { verdict_ = failure_.status; });
  meeting_.reset();
}

}  // namespace troupe
