#include "scheduler/cluster/step_gather.h"

#include <algorithm>
#include <utility>

#include "proto/plan/islands.h"
#include "proto/plan/tier_traffic.h"
#include "proto/plan/utilization.h"

namespace troupe {
namespace {

// Rank 0's, if it did, or of those that have the step's scalars the first.
const StepReport& FirstThatKnows(const std::map<int, StepReport>& reports) {
  const auto known =
      std::find_if(reports.begin(), reports.end(),
                   [](const auto& of) { return !of.second.of_others(); });
  return known != reports.end() ? known->second : reports.begin()->second;
}

// Between two exchanges one island may be `every` steps ahead of another.
size_t OpenMax(const Plan& plan) {
  const int64_t apart = HasIslands(plan) ? plan.job().islands().every() : 0;
  return std::min<int64_t>(StepGather::kStepsOpenMax + apart,
                           StepGather::kStepsOpenAgainMax);
}

}  // namespace

StepGather::StepGather(int ranks, const Plan& plan)
    : ranks_(ranks),
      ranks_of_island_(
          std::max(1, ranks / IslandsOf(plan.job().parallelism()))),
      open_max_(OpenMax(plan)),
      lanes_(plan.lanes()),
      sums_(ReportedSums(plan.sums())),
      tokens_per_step_(plan.derived().tokens_per_step()),
      flops_per_token_(plan.derived().model_flops_per_token()),
      peak_flops_(UtilizationPeak(plan.prediction())) {}

void StepGather::Resume(int64_t last, std::map<int, int64_t> ended) {
  resumed_ = true;
  last_ = last;
  ended_ = std::move(ended);
}

bool StepGather::IsDue() const {
  const auto& [step, open] = *open_.begin();
  // What those that have ended said of it may be lost; the others say the same.
  size_t reports = open.reports.size();
  size_t heard = newest_.size();
  for (const auto& [rank, last] : ended_) {
    reports += last >= step && open.reports.count(rank) == 0;
    heard += newest_.count(rank) == 0;
  }
  if (reports >= static_cast<size_t>(ranks_)) return true;
  if (open_.size() <= open_max_) return false;
  if (!resumed_ || open_.size() > kStepsOpenAgainMax) return true;
  return heard >= static_cast<size_t>(ranks_) &&
         std::all_of(newest_.begin(), newest_.end(),
                     [step = step](const auto& newest) {
                       return newest.second > step;
                     });
}

std::vector<GatheredStep> StepGather::Add(const StepReport& report) {
  const int64_t step = report.record().step();
  std::vector<GatheredStep> done;
  if (step <= last_) return done;
  const int rank = report.ref().rank();
  open_[step].reports.emplace(rank, report);
  if (resumed_) newest_[rank] = std::max(newest_[rank], step);
  while (!open_.empty() && IsDue()) {
    const auto oldest = open_.begin();
    done.push_back(Close(oldest->first, oldest->second));
    last_ = oldest->first;
    open_.erase(oldest);
  }
  return done;
}

std::vector<GatheredStep> StepGather::CloseThrough(int64_t step) {
  std::vector<GatheredStep> done;
  while (!open_.empty() && open_.begin()->first <= step) {
    const auto oldest = open_.begin();
    done.push_back(Close(oldest->first, oldest->second));
    last_ = oldest->first;
    open_.erase(oldest);
  }
  return done;
}

std::optional<OpenDifference> StepGather::FirstDifference() const {
  for (const auto& [step, open] : open_) {
    std::optional<ScalarDifference> difference = DifferenceIn(open.reports);
    if (difference.has_value()) return {{step, *std::move(difference)}};
  }
  return std::nullopt;
}

std::optional<ScalarDifference> StepGather::DifferenceIn(
    const Reports& reports) const {
  if (ranks_of_island_ >= ranks_) {
    return CompareScalars(reports, ranks_, sums_);
  }
  std::map<int, Reports> by_island;
  for (const auto& [rank, report] : reports) {
    by_island[rank / ranks_of_island_].emplace(rank, report);
  }
  for (const auto& [island, of_island] : by_island) {
    std::optional<ScalarDifference> difference =
        CompareScalars(of_island, ranks_of_island_, sums_);
    if (difference.has_value()) return difference;
  }
  return std::nullopt;
}

void StepGather::TakeMeans(const Reports& reports, int agreed,
                           StepRecord& record) const {
  // Of an island whose ranks differ, the one that most agree with.
  std::map<int, const StepRecord*> by_island = {
      {agreed / ranks_of_island_, &reports.at(agreed).record()}};
  for (const auto& [rank, report] : reports) {
    by_island.emplace(rank / ranks_of_island_, &report.record());
  }
  double loss = 0;
  double norm = 0;
  for (const auto& [island, of_island] : by_island) {
    loss += of_island->loss();
    norm += of_island->grad_norm();
  }
  const auto islands = static_cast<double>(by_island.size());
  record.set_loss(loss / islands);
  record.set_grad_norm(norm / islands);
}

GatheredStep StepGather::Close(int64_t step, const Open& open) const {
  GatheredStep gathered;
  StepRecord& record = gathered.record;
  gathered.difference = DifferenceIn(open.reports);
  const StepReport& agreed = gathered.difference.has_value()
                                 ? open.reports.at(gathered.difference->agreed)
                                 : FirstThatKnows(open.reports);
  record = agreed.record();
  if (ranks_of_island_ < ranks_) TakeMeans(open.reports, agreed.ref().rank(), record);
  gathered.experts = ExpertLoads::PointOf(step, sums_, agreed.sums());
  record.clear_tiers();
  Timeline timeline;
  timeline.set_step(step);
  *timeline.mutable_lanes() = lanes_;
  for (const auto& [rank, report] : open.reports) {
    const StepRecord& of_rank = report.record();
    if (!report.of_others()) {
      record.set_step_seconds(
          std::max(record.step_seconds(), of_rank.step_seconds()));
    }
    record.set_memory_bytes(
        std::max(record.memory_bytes(), of_rank.memory_bytes()));
    record.set_checkpoint_stall_seconds(std::max(
        record.checkpoint_stall_seconds(), of_rank.checkpoint_stall_seconds()));
    for (const TierTraffic& tier : of_rank.tiers()) {
      AddTraffic(tier, *record.mutable_tiers());
    }
    if (!record.has_validation_loss() && of_rank.has_validation_loss()) {
      record.set_validation_loss(of_rank.validation_loss());
    }
    if (!record.has_sample() && of_rank.has_sample()) {
      *record.mutable_sample() = of_rank.sample();
    }
    if (report.has_timeline() && IsTraced(rank, ranks_)) {
      *timeline.add_ranks() = report.timeline();
      timeline.mutable_ranks(timeline.ranks_size() - 1)->set_rank(rank);
    }
  }
  if (tokens_per_step_ > 0 && record.step_seconds() > 0) {
    record.set_tokens_per_second(tokens_per_step_ / record.step_seconds());
    record.set_mfu(ModelFlopsUtilization(record.tokens_per_second(),
                                         flops_per_token_, peak_flops_));
  }
  if (timeline.ranks_size() == std::min(ranks_, kTracedRanksMax)) {
    gathered.timeline = std::move(timeline);
  }
  return gathered;
}

}  // namespace troupe
