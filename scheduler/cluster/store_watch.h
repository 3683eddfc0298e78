// Whether the store can be written, as far as its answers tell. While it cannot
// be, no job is started, and it is asked again now and then.
#ifndef TROUPE_SCHEDULER_CLUSTER_STORE_WATCH_H_
#define TROUPE_SCHEDULER_CLUSTER_STORE_WATCH_H_

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "proto/base/ids.h"
#include "scheduler/cluster/action.h"

namespace troupe {

class StoreWatch {
 public:
  explicit StoreWatch(absl::Duration retry) : retry_(retry) {}

  // Not OK: it cannot be written, and why.
  const absl::Status& status() const { return status_; }

  // Its answer. True: it could not be written, and can be again.
  bool Heard(const AwaitStored& asked, const absl::Status& answer) {
    if (asked.job == JobId()) will_tell_ = false;
    const bool again = answer.ok() && !status_.ok();
    status_ = answer;
    return again;
  }
  // It could not store what a job waits for.
  void Failed(absl::Time now) { asked_ = now; }
  // It has not answered a job for so long.
  void IsSilent(absl::Duration time) {
    status_ = absl::DeadlineExceededError(
        absl::StrCat("it has not answered for ", absl::FormatDuration(time)));
  }

  // Asks again, where it is time to.
  void Ask(absl::Time now, Actions& actions) {
    if (status_.ok() || will_tell_ || now - asked_ < retry_) return;
    asked_ = now;
    will_tell_ = true;
    actions.push_back(AwaitStored{});
  }

 private:
  const absl::Duration retry_;
  absl::Status status_;
  absl::Time asked_;        // not OK: when it was asked the last time
  bool will_tell_ = false;  // that was not answered yet
};

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_CLUSTER_STORE_WATCH_H_
