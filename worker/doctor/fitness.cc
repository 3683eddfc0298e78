#include "worker/doctor/fitness.h"

#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "proto/base/steady_time.h"

namespace troupe {

struct Fitness::State {
  CheckSubject subject;
  std::vector<Check> checks;
  absl::Mutex mutex;
  SteadyCondition ends;
  int64_t begun ABSL_GUARDED_BY(mutex) = 0;  // looks so far
  int64_t ended ABSL_GUARDED_BY(mutex) = 0;  // and how many of them
  std::string checking ABSL_GUARDED_BY(mutex);
  std::vector<std::string> found ABSL_GUARDED_BY(mutex);  // by the last one

  void Look() ABSL_LOCKS_EXCLUDED(mutex) {
    std::vector<std::string> unfit;
    for (const Check& check : checks) {
      {
        absl::MutexLock lock(&mutex);
        checking = check.name;
      }
      const Finding finding = check.run(subject);
      if (finding.state != FindingState::kFail) continue;
      unfit.push_back(absl::StrCat(check.name, ": ", finding.text));
    }
    absl::MutexLock lock(&mutex);
    found = std::move(unfit);
    ended = begun;
    ends.Say();
  }
};

Fitness::Fitness(CheckSubject subject, std::vector<Check> checks,
                 absl::Duration limit)
    : state_(std::make_shared<State>()), limit_(limit) {
  state_->subject = std::move(subject);
  state_->checks = std::move(checks);
}

std::vector<std::string> Fitness::Look() {
  absl::MutexLock lock(&state_->mutex);
  if (state_->begun == state_->ended) {
    ++state_->begun;
    if (!state_->checks.empty()) state_->checking = state_->checks[0].name;
    std::thread([state = state_] { state->Look(); }).detach();
  }
  const auto has_ended = [this, look = state_->begun]()
                             ABSL_SHARED_LOCKS_REQUIRED(state_->mutex) {
                               return state_->ended >= look;
                             };
  if (!state_->ends.Await(state_->mutex, limit_, has_ended)) {
    return {absl::StrCat(state_->checking, ": no answer within ",
                         absl::FormatDuration(limit_))};
  }
  return state_->found;
}

}  // namespace troupe
