// What is planned at a time is bounded in sum, in instructions, as each plan is
// by itself (plan_limits.h): planning takes memory for each of them. A short
// plan never waits here: room for one of each thread is set aside. Longer ones
// share the rest. Each may ask for more while it has some, as trials with
// recomputation are longer, so what may begin is what leaves room for one of
// them to become as long as a plan may be: it ends then, and so do the others,
// one after the other (the banker's algorithm, where all claim alike). Plans
// that have some come first, then queued jobs, then questions, each kind in
// order. A question that kPassesMax later ones have passed counts as a job:
// nobody waits for ever. A caller that waits keeps its thread; what else may
// begin meanwhile is the caller's to say (planning.h).
#ifndef TROUPE_SCHEDULER_SERVICE_PLAN_BUDGET_H_
#define TROUPE_SCHEDULER_SERVICE_PLAN_BUDGET_H_

#include <cstdint>
#include <functional>
#include <set>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "proto/base/steady_time.h"

namespace troupe {

class PlanBudget {
 public:
  struct Sizes {
    int64_t all = 0;    // of long plans, together
    int64_t one = 0;    // of a plan, at most; not above `all`
    int64_t small = 0;  // up to here a plan is short
  };
  static constexpr int kPassesMax = 8;

  explicit PlanBudget(const Sizes& sizes) : sizes_(sizes) {}

  // The share of a caller that plans, one plan after the other.
  class Share {
   public:
    // Borrows the budget. `name` is for errors.
    Share(PlanBudget& budget, std::string name, bool is_job);
    ~Share();
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;

    // Takes room for `instructions`, less or more than before, where there is
    // some at once and none waits that comes first; else false, and what it
    // had stays. A plan that was long counts with the long ones to its end.
    // REQUIRES: at most Sizes::one.
    bool TakeNow(int64_t instructions);

    // Has room for `instructions` from here on, less or more than before: waits
    // until there is. What `may_go_on` says, which is asked now and then
    // meanwhile, with what was too large for what else is planned. REQUIRES: at
    // most Sizes::one.
    absl::Status Take(int64_t instructions,
                      const std::function<absl::Status()>& may_go_on);

   private:
    friend class PlanBudget;
    bool TakeNowLocked(int64_t instructions)
        ABSL_EXCLUSIVE_LOCKS_REQUIRED(budget_.mutex_);
    // Whether what it waits for is there, and its turn.
    bool IsDue() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(budget_.mutex_);
    // Before questions that have waited as long.
    bool counts_as_job() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(budget_.mutex_) {
      return is_job_ || passes_ >= kPassesMax;
    }
    // Takes what it waits for.
    void Get() ABSL_EXCLUSIVE_LOCKS_REQUIRED(budget_.mutex_);

    PlanBudget& budget_;
    const std::string name_;
    const bool is_job_;
    // The budget's mutex guards these.
    int64_t held_ = 0;    // of a plan that is or was long; else 0
    int64_t wanted_ = 0;  // waits for it; 0: for nothing
    int64_t number_ = 0;  // of its wait
    int passes_ = 0;      // of others, that began to wait after it
  };

 private:
  int64_t HeldByOthers(const Share& share) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether it leaves room for somebody to end.
  bool IsSafe(const Share& share) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsItsTurn(const Share& share) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string WaitText(const Share& share) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Sizes sizes_;
  absl::Mutex mutex_;
  SteadyCondition changes_;
  std::set<Share*> shares_ ABSL_GUARDED_BY(mutex_);
  int64_t waits_ ABSL_GUARDED_BY(mutex_) = 0;  // so far
};

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_SERVICE_PLAN_BUDGET_H_
