#include "scheduler/service/plan_budget.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "proto/base/check.h"
#include "proto/base/status.h"

namespace troupe {
namespace {

// How often a caller that waits asks whether it may go on.
constexpr absl::Duration kAskAgain = absl::Milliseconds(100);

}  // namespace

PlanBudget::Share::Share(PlanBudget& budget, std::string name, bool is_job)
    : budget_(budget), name_(std::move(name)), is_job_(is_job) {
  absl::MutexLock lock(&budget_.mutex_);
  budget_.shares_.insert(this);
}

PlanBudget::Share::~Share() {
  absl::MutexLock lock(&budget_.mutex_);
  budget_.shares_.erase(this);
  budget_.changes_.Say();
}

bool PlanBudget::Share::IsDue() const {
  return budget_.IsSafe(*this) && budget_.IsItsTurn(*this);
}

void PlanBudget::Share::Get() {
  for (Share* const other : budget_.shares_) {
    const bool waits = other->wanted_ > 0 && other->held_ == 0;
    if (held_ == 0 && waits && other->number_ < number_) ++other->passes_;
  }
  held_ = std::exchange(wanted_, 0);
  passes_ = 0;
  budget_.changes_.Say();
}

bool PlanBudget::Share::TakeNowLocked(int64_t instructions) {
  CHECK(instructions <= budget_.sizes_.one)
      << name_ << " has a plan of " << instructions << " instructions";
  if (instructions <= held_) {
    held_ = instructions;
    budget_.changes_.Say();
    return true;
  }
  if (held_ == 0 && instructions <= budget_.sizes_.small) return true;
  wanted_ = instructions;
  number_ = ++budget_.waits_;
  const bool due = IsDue();
  if (due) Get();
  wanted_ = 0;
  return due;
}

bool PlanBudget::Share::TakeNow(int64_t instructions) {
  absl::MutexLock lock(&budget_.mutex_);
  return TakeNowLocked(instructions);
}

absl::Status PlanBudget::Share::Take(
    int64_t instructions, const std::function<absl::Status()>& may_go_on) {
  absl::MutexLock lock(&budget_.mutex_);
  if (TakeNowLocked(instructions)) return absl::OkStatus();
  wanted_ = instructions;
  const auto is_due = [this]()
                          ABSL_NO_THREAD_SAFETY_ANALYSIS { return IsDue(); };
  while (!budget_.changes_.Await(budget_.mutex_, kAskAgain, is_due)) {
    // Its answer may take other locks.
    budget_.mutex_.Unlock();
    const absl::Status over = may_go_on();
    budget_.mutex_.Lock();
    if (over.ok()) continue;
    const absl::Status why = Annotate(over, budget_.WaitText(*this));
    wanted_ = 0;
    budget_.changes_.Say();
    return why;
  }
  Get();
  return absl::OkStatus();
}

int64_t PlanBudget::HeldByOthers(const Share& share) const {
  int64_t held = 0;
  for (const Share* const other : shares_) {
    if (other != &share) held += other->held_;
  }
  return held;
}

bool PlanBudget::IsSafe(const Share& share) const {
  int64_t largest = share.wanted_;
  for (const Share* const other : shares_) {
    if (other != &share) largest = std::max(largest, other->held_);
  }
  const int64_t free = sizes_.all - HeldByOthers(share) - share.wanted_;
  return free >= 0 && free + largest >= sizes_.one;
}

bool PlanBudget::IsItsTurn(const Share& share) const {
  if (share.held_ > 0) return true;
  const auto place = [](const Share& one) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return std::make_tuple(one.held_ == 0, !one.counts_as_job(), one.number_);
  };
  return std::none_of(shares_.begin(), shares_.end(), [&](const Share* other) {
    return other->wanted_ > 0 && place(*other) < place(share);
  });
}

std::string PlanBudget::WaitText(const Share& share) const {
  return absl::StrCat("the plan of ", share.name_, " has ", share.wanted_,
                      " instructions and waited for others, of ",
                      HeldByOthers(share), " in all, as at most ", sizes_.all,
                      " are planned at a time");
}

}  // namespace troupe
