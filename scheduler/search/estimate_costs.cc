// What the units of a candidate cost, as it becomes known.
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "proto/plan/sharing.h"
#include "proto/plan/strategies.h"
#include "scheduler/layouts/replicas.h"
#include "scheduler/search/estimate.h"

namespace troupe {
namespace {

// What its units' costs depend on.
std::string KeyOfCosts(const Candidate& candidate) {
  const ParallelismSpec& way = candidate.parallelism;
  return absl::StrCat(SharingText(way), "/", SharingOfDataText(way), "/",
                      StrategiesText(way), "/", candidate.micro_batch_size, "/",
                      candidate.recompute);
}

}  // namespace

absl::StatusOr<const ModelKinds*> Estimator::KindsOfMicroBatch(
    const JobSpec& way) {
  const int64_t sequences = MicroBatchSequences(way);
  auto found = known_.kinds.find(sequences);
  if (found == known_.kinds.end()) {
    ASSIGN_OR_RETURN(ModelKinds kinds, KindsOfModel(way));
    found = known_.kinds.emplace(sequences, std::move(kinds)).first;
  }
  return &found->second;
}

absl::StatusOr<const UnitCosts*> Estimator::KnownOr(
    const std::string& key,
    const std::function<absl::StatusOr<UnitCosts>()>& costs) {
  auto found = known_.units.find(key);
  if (found == known_.units.end()) {
    absl::StatusOr<UnitCosts> made = costs();
    if (made.ok()) made->number = static_cast<int>(known_.units.size());
    found = known_.units.emplace(key, std::move(made)).first;
  }
  if (!found->second.ok()) return found->second.status();
  return &*found->second;
}

absl::StatusOr<const UnitCosts*> Estimator::CostsOf(
    const Candidate& candidate) {
  return KnownOr(KeyOfCosts(candidate), [&]() -> absl::StatusOr<UnitCosts> {
    if (candidate.parallelism.strategies().empty()) {
      return CostsOfUnits(candidate);
    }
    return MixedCosts(candidate, /*is_whole=*/true);
  });
}

absl::StatusOr<const UnitCosts*> Estimator::LeastCostsOf(
    const Candidate& candidate) {
  if (candidate.parallelism.strategies().empty()) return CostsOf(candidate);
  return KnownOr(absl::StrCat("least/", KeyOfCosts(candidate)),
                 [&] { return MixedCosts(candidate, /*is_whole=*/false); });
}

absl::StatusOr<UnitCosts> Estimator::CostsOfUnits(const Candidate& candidate) {
  return CostUnits(
      job_, candidate, workers_, machines_,
      [this](const JobSpec& way) { return KindsOfMicroBatch(way); });
}

absl::StatusOr<UnitCosts> Estimator::MixedCosts(const Candidate& candidate,
                                                bool is_whole) {
  const ParallelismSpec& way = candidate.parallelism;
  const auto costs_with = [&](ParallelismSpec sharing) {
    Candidate alike = candidate;
    alike.parallelism = std::move(sharing);
    alike.parallelism.clear_strategies();
    return CostsOf(alike);
  };
  std::vector<const UnitCosts*> by_strategy;
  ASSIGN_OR_RETURN(by_strategy.emplace_back(), costs_with(way));
  for (const StrategySpec& strategy : way.strategies()) {
    ASSIGN_OR_RETURN(by_strategy.emplace_back(),
                     costs_with(WithStrategy(way, strategy)));
  }
  ASSIGN_OR_RETURN(const UnitCosts* const on_one_rank,
                   costs_with(WithStrategy(way, StrategySpec())));
  if (!is_whole) return MixCosts(way, by_strategy, *on_one_rank, nullptr);
  ASSIGN_OR_RETURN(const UnitCosts mixed, CostsOfUnits(candidate));
  return MixCosts(way, by_strategy, *on_one_rank, &mixed);
}

}  // namespace troupe
