#include "scheduler/search/candidates.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "proto/base/status.h"
#include "proto/plan/plan_limits.h"

namespace troupe {
namespace {

constexpr size_t kNearest = 3;
// A division whose bound is so much longer than the best estimate is left out:
// its own estimates are longer still.
constexpr double kBoundMargin = 0.1;
// Of how many divisions progress is said.
constexpr int kHearEvery = 50;

// Most that are on one host.
int LargestHost(const std::vector<WorkerDescription>& workers) {
  std::map<std::string, int> hosts;
  int most = 0;
  for (const WorkerDescription& worker : workers) {
    most = std::max(most, ++hosts[worker.host()]);
  }
  return most;
}

std::string KeyOf(const Candidate& candidate) {
  return absl::StrCat(candidate.parallelism.ShortDebugString(), "/",
                      candidate.micro_batch_size, "/", candidate.recompute);
}

// What a refusal says is wrong, without the way out.
std::string ReasonOf(const absl::Status& refused) {
  const std::vector<std::string> parts =
      absl::StrSplit(refused.message(), "; ");
  return parts.front();
}

bool IsTooLong(const StepLength& length) {
  return length.with(length.micro_batches) > kInstructionsMax;
}

constexpr char kTooLong[] = "too many micro-batches for the longest plan";
constexpr char kSlower[] = "slower at best than others are estimated";

}  // namespace

bool Estimated::operator<(const Estimated& other) const {
  return std::tie(value, estimate.seconds, key) <
         std::tie(other.value, other.estimate.seconds, other.key);
}

Candidates::Candidates(const JobSpec& job,
                       const std::vector<WorkerDescription>& workers,
                       double error, const MayGoOn& may_go_on,
                       KnownCosts& known)
    : workers_(workers),
      error_(error),
      may_go_on_(may_go_on),
      space_(job),
      estimator_(job, workers, known),
      objective_(job, workers),
      modes_(space_.RecomputeModesOf()) {
  space_.LimitTo(LargestHost(workers));
  if (estimator_.AreUnlike()) space_.TryUnevenSplits();
}

// Fewer ranks take no less time together.
double Candidates::LeastOf(int ranks) const {
  return objective_.ValueOf(rank_seconds_ / ranks, ranks);
}

absl::Status Candidates::EstimateAll(std::function<void(int ranks)> hears) {
  hears_ = std::move(hears);
  numbers_ = space_.RankCounts(static_cast<int>(workers_.size()));
  std::reverse(numbers_.begin(), numbers_.end());
  const bool all = objective_.fewest() || workers_.size() <= Space::kFewRanks;
  while (!numbers_.empty() &&
         (all || left_.empty() || LeastOf(numbers_.back()) <= best_)) {
    RETURN_IF_ERROR(EstimateNextNumber());
  }
  return absl::OkStatus();
}

absl::Status Candidates::EstimateNextNumber() {
  const int ranks = numbers_.back();
  numbers_.pop_back();
  hears_(ranks);
  return EstimateRanks(ranks);
}

absl::Status Candidates::GoOn(int ranks) {
  if (++asked_ % kHearEvery == 0 && hears_) hears_(ranks);
  return Ask(may_go_on_);
}

absl::Status Candidates::EstimateRanks(int ranks) {
  std::vector<Division> divisions;
  for (Candidate& candidate : space_.DivisionsOf(ranks, reasons_)) {
    RETURN_IF_ERROR(GoOn(ranks));
    ++divisions_;
    const absl::StatusOr<Estimate> bound = estimator_.BoundOf(candidate);
    if (!bound.ok()) {
      Refuse(bound.status());
    } else if (IsTooLong(bound->length)) {
      ++reasons_[kTooLong];
    } else if (!bound->fits()) {
      AddTooLarge(candidate, *bound, ranks);
    } else {
      rank_seconds_ = std::min(rank_seconds_, bound->seconds * ranks);
      divisions.push_back({.candidate = std::move(candidate),
                           .ranks = ranks,
                           .value = objective_.ValueOf(bound->seconds, ranks),
                           .seconds = bound->seconds});
    }
  }
  std::stable_sort(divisions.begin(), divisions.end(),
                   [](const Division& a, const Division& b) {
                     return std::tie(a.value, a.seconds) <
                            std::tie(b.value, b.seconds);
                   });
  for (Division& division : divisions) {
    RETURN_IF_ERROR(GoOn(ranks));
    if (!LeaveOut(division)) EstimatePlansOf(division);
  }
  return absl::OkStatus();
}

bool Candidates::LeaveOut(Division division) {
  if (division.value <= best_ * (1 + std::min(error_, kBoundMargin))) {
    return false;
  }
  ++reasons_[kSlower];
  slower_.push_back(std::move(division));
  return true;
}

absl::StatusOr<bool> Candidates::Reconsider(double value) {
  bool any = false;
  while (!numbers_.empty() && LeastOf(numbers_.back()) <= value) {
    RETURN_IF_ERROR(EstimateNextNumber());
    any = true;
  }
  // Of a division, candidates may be left out again.
  for (std::vector<Division> again = TakeSlower(value); !again.empty();
       again = TakeSlower(value)) {
    any = true;
    for (const Division& division : again) {
      RETURN_IF_ERROR(Ask(may_go_on_));
      EstimatePlansOf(division);
    }
  }
  return any;
}

std::vector<Candidates::Division> Candidates::TakeSlower(double value) {
  const auto rest = std::stable_partition(
      slower_.begin(), slower_.end(),
      [value](const Division& division) { return division.value <= value; });
  std::vector<Division> taken(std::make_move_iterator(slower_.begin()),
                              std::make_move_iterator(rest));
  slower_.erase(slower_.begin(), rest);
  if (taken.empty()) return taken;
  reasons_[kSlower] -= static_cast<int64_t>(taken.size());
  if (reasons_[kSlower] == 0) reasons_.erase(kSlower);
  return taken;
}

void Candidates::EstimatePlansOf(const Division& division) {
  if (division.is_one) {
    const Mode mode =
        std::find(modes_.begin(), modes_.end(), division.candidate.recompute);
    return EstimateFrom(mode, division.candidate, division.ranks,
                        /*may_leave_out=*/false);
  }
  for (const Candidate& candidate : space_.CandidatesOf(division.candidate)) {
    EstimateFrom(modes_.begin(), candidate, division.ranks,
                 /*may_leave_out=*/true);
  }
}

void Candidates::EstimateFrom(Mode mode, Candidate candidate, int ranks,
                              bool may_leave_out) {
  absl::optional<absl::StatusOr<Estimate>> with_least;  // with the last mode
  for (const Mode first = mode; mode != modes_.end(); ++mode) {
    candidate.recompute = *mode;
    if (may_leave_out) {
      const absl::StatusOr<double> least = estimator_.LeastSecondsOf(candidate);
      if (!least.ok()) return Refuse(least.status());
      if (LeaveOut({.candidate = candidate,
                    .ranks = ranks,
                    .value = objective_.ValueOf(*least, ranks),
                    .seconds = *least,
                    .is_one = true})) {
        return;
      }
    }
    if (mode == first + 1) {
      Candidate least = candidate;
      least.recompute = modes_.back();
      with_least = estimator_.Of(least);
      // If not even what the last one keeps fits, what those between keep does
      // not either.
      if (with_least->ok() && (*with_least)->lacks_for_kept) {
        return AddTooLarge(least, **with_least, ranks);
      }
    }
    const bool is_last = mode + 1 == modes_.end();
    const absl::StatusOr<Estimate> estimate = is_last && with_least.has_value()
                                                  ? *with_least
                                                  : estimator_.Of(candidate);
    if (!estimate.ok()) return Refuse(estimate.status());
    if (!estimate->fits()) {
      AddTooLarge(candidate, *estimate, ranks);
      continue;
    }
    if (IsTooLong(estimate->length)) {
      ++reasons_[kTooLong];
      return;
    }
    const double value =
        objective_.ValueOf(candidate.parallelism, estimate->seconds, ranks);
    best_ = std::min(best_, value);
    ++estimated_;
    Note(*estimate, ranks);
    left_.insert({.candidate = candidate,
                  .estimate = *estimate,
                  .ranks = ranks,
                  .value = value,
                  .key = KeyOf(candidate),
                  .family = FamilyOf(candidate)});
    return;
  }
}

void Candidates::EstimateNext(const Estimated& lacking) {
  const Mode mode =
      std::find(modes_.begin(), modes_.end(), lacking.candidate.recompute);
  if (mode == modes_.end()) return;
  EstimateFrom(mode + 1, lacking.candidate, lacking.ranks,
               /*may_leave_out=*/false);
}

absl::optional<Estimated> Candidates::Take(const Look& look) {
  auto best = left_.end();
  absl::optional<Value> least;
  for (auto one = left_.begin(); one != left_.end(); ++one) {
    const absl::optional<Value> value = look(*one);
    if (!value.has_value() || (least.has_value() && *value >= *least)) continue;
    least = value;
    best = one;
  }
  if (best == left_.end()) return absl::nullopt;
  return std::move(left_.extract(best).value());
}

void Candidates::Refuse(const absl::Status& refused) {
  if (refusal_.ok()) refusal_ = refused;
  ++reasons_[ReasonOf(refused)];
}

void Candidates::Note(const Estimate& estimate, int ranks) {
  EstimatedWay& way = all_.emplace_back();
  way.set_step_seconds(estimate.seconds);
  way.set_memory_bytes(estimate.bytes);
  way.set_fits(estimate.fits());
  way.set_ranks(ranks);
}

void Candidates::AddTooLarge(const Candidate& candidate,
                             const Estimate& estimate, int ranks) {
  ++too_large_;
  Note(estimate, ranks);
  nearest_.push_back(
      {.candidate = candidate, .estimate = estimate, .key = KeyOf(candidate)});
  std::sort(nearest_.begin(), nearest_.end(),
            [](const Estimated& a, const Estimated& b) {
              return std::tie(a.estimate.lacks, a.key) <
                     std::tie(b.estimate.lacks, b.key);
            });
  if (nearest_.size() > kNearest) nearest_.pop_back();
}

}  // namespace troupe
