#include "scheduler/search/estimate.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/base/status.h"
#include "proto/plan/precision.h"
#include "proto/plan/ranks_needed.h"
#include "scheduler/layouts/replicas.h"
#include "scheduler/layouts/zero.h"
#include "scheduler/passes/nominal_cost.h"
#include "scheduler/planner/partition.h"
#include "scheduler/planner/resolve.h"
#include "scheduler/simulate/place_seconds.h"

namespace troupe {
namespace {

// What each unit takes at each place, on ranks of each speed.
PlaceSeconds SecondsAt(const std::vector<std::map<RankSpeed, int>>& speeds,
                       const UnitCosts& costs) {
  PlaceSeconds seconds;
  for (const std::map<RankSpeed, int>& place : speeds) {
    std::vector<EqualRanks>& of_place = seconds.emplace_back();
    for (const auto& [speed, count] : place) {
      EqualRanks& ranks = of_place.emplace_back();
      for (const int kind : costs.kind_of_unit) {
        const UnitCost& unit = costs.kinds[kind];
        ranks.seconds.push_back((unit.forward.ComputeOn(speed.machine) +
                                 unit.backward.ComputeOn(speed.machine)) /
                                speed.share);
      }
    }
  }
  return seconds;
}

// As UnequalPlaces (scheduler/simulate/place_seconds.h).
bool AreUnequal(const PlaceSeconds& places) {
  std::vector<double> slowest;
  for (const std::vector<EqualRanks>& place : places) {
    double& most = slowest.emplace_back();
    for (const EqualRanks& ranks : place) {
      most = std::max(most, std::accumulate(ranks.seconds.begin(),
                                            ranks.seconds.end(), 0.0));
    }
  }
  const auto [least, most] =
      std::minmax_element(slowest.begin(), slowest.end());
  return *most > (1 + kEqualSpeeds) * *least;
}

int StagesBefore(const std::vector<std::vector<int>>& holders, int ranks) {
  std::vector<int> first(ranks, static_cast<int>(holders.size()));
  for (int s = static_cast<int>(holders.size()) - 1; s >= 0; --s) {
    for (const int rank : holders[s]) first[rank] = s;
  }
  return *std::max_element(first.begin(), first.end());
}

}  // namespace

Estimator::Estimator(const JobSpec& job,
                     const std::vector<WorkerDescription>& workers,
                     KnownCosts& known)
    : job_(job),
      workers_(workers),
      known_(known),
      groups_(workers),
      narrow_gradients_(BytesOfElement(GradientType(job.training())) == 2),
      narrow_parameters_(BytesOfElement(ComputeType(job.training())) == 2) {
  FindMachines();
}

Estimator::Shape Estimator::ShapeOf(const ParallelismSpec& parallelism,
                                    int micro_batch_size) const {
  Shape shape = {.ranks = RanksNeeded(parallelism),
                 .pipeline = std::max(1, parallelism.pipeline())};
  const int64_t at_once =
      int64_t{1} * micro_batch_size * std::max(1, parallelism.data());
  shape.micro_batches = static_cast<int>(
      std::max<int64_t>(1, job_.training().global_batch_size() / at_once));
  for (const int count : parallelism.micro_batches()) {
    shape.micro_batches = std::max(shape.micro_batches, count);
  }
  shape.replicas = troupe::ReplicasOf(parallelism);
  if (parallelism.zero() > 0) {
    const bool all = !parallelism.has_zero_size() ||
                     parallelism.zero_size() == DealtMost(parallelism);
    shape.slices = all ? Shape::kAll : parallelism.zero_size();
  }
  return shape;
}

absl::StatusOr<Estimator::KnownOrder*> Estimator::OrderOf(
    const ParallelismSpec& way, int micro_batches) {
  const std::string key =
      absl::StrCat(way.pipeline_schedule(), "/", way.pipeline(), "/",
                   way.virtual_stages(), "/", micro_batches);
  auto found = orders_.find(key);
  if (found == orders_.end()) {
    ASSIGN_OR_RETURN(const Pipeline schedule,
                     FindPipeline(way.pipeline_schedule()));
    absl::StatusOr<ComputeOrder> order =
        schedule.order({.ranks = way.pipeline(),
                        .micro_batches = micro_batches,
                        .virtual_stages = way.virtual_stages()});
    if (order.ok()) {
      KnownOrder known = {.order = *std::move(order)};
      known.holders =
          StageHolders(known.order, way.pipeline() * way.virtual_stages());
      size_t held = 0;
      for (const std::vector<int>& ranks : known.holders) held += ranks.size();
      known.ranks_hold_several = held > known.order.size();
      if (!schedule.overlaps_steps) {
        known.stages_before = StagesBefore(known.holders, way.pipeline());
      }
      found = orders_.emplace(key, std::move(known)).first;
    } else {
      found = orders_.emplace(key, order.status()).first;
    }
  }
  if (!found->second.ok()) return found->second.status();
  return &*found->second;
}

absl::StatusOr<Estimator::Stages> Estimator::CutStages(
    const UnitCosts& costs, const StageLayout& layout,
    const ParallelismSpec& way) {
  std::vector<Unit> units;
  for (const int kind : costs.kind_of_unit) {
    units.push_back(costs.kinds[kind].nominal);
  }
  Stages stages;
  stages.holders = layout.holders;
  ASSIGN_OR_RETURN(stages.units, PartitionUnits(units, layout, way));
  return stages;
}

StageLayout Estimator::LayoutOf(const ParallelismSpec& way,
                                const UnitCosts& costs, const KnownOrder& order,
                                const Places& places, int micro_batches) {
  StageLayout layout = {.holders = order.holders,
                        .micro_batches = 1,
                        .seconds = {},
                        .memory = absl::nullopt};
  // Else no unit moves to make ranks even.
  if (order.ranks_hold_several) layout.micro_batches = micro_batches;
  if (!places.alike && way.pipeline() > 1) {
    layout.seconds = SecondsAt(places.speeds, costs);
    if (!AreUnequal(layout.seconds)) layout.seconds.clear();
  }
  return layout;
}

absl::StatusOr<const Estimator::Stages*> Estimator::StagesOf(
    const ParallelismSpec& way, const UnitCosts& costs, const Places& places,
    const StageLayout& layout) {
  const bool unequal = !layout.seconds.empty();
  // By what units take, of the first one: a larger micro-batch changes no cut.
  std::string key =
      absl::StrCat(absl::StrJoin(way.stages(), ","), "/", layout.micro_batches);
  if (unequal) {
    absl::StrAppend(&key, "/", costs.number);
  } else {
    const double first = NominalSeconds(costs.kinds.front().nominal);
    for (const UnitCost& unit : costs.kinds) {
      absl::StrAppend(&key, "/", NominalSeconds(unit.nominal) / first);
    }
  }
  for (const std::vector<int>& holders : layout.holders) {
    absl::StrAppend(&key, "/", absl::StrJoin(holders, ","));
  }
  for (const std::map<RankSpeed, int>& place : places.speeds) {
    if (!unequal) break;
    key.push_back('/');
    for (const auto& [speed, count] : place) {
      absl::StrAppend(&key, speed.machine, ":", speed.share, ",");
    }
  }
  auto found = stages_.find(key);
  if (found == stages_.end()) {
    found = stages_.emplace(key, CutStages(costs, layout, way)).first;
  }
  if (!found->second.ok()) return found->second.status();
  return &*found->second;
}

StepLength Estimator::LengthOf(const Shape& shape, const UnitCosts& costs) {
  StepLength length = {.pipeline = shape.pipeline,
                       .micro_batches = shape.micro_batches};
  for (const int kind : costs.kind_of_unit) {
    length.of_micro_batch += costs.kinds[kind].instructions;
  }
  return length;
}

absl::StatusOr<Estimate> Estimator::Of(const Candidate& candidate) {
  ASSIGN_OR_RETURN(const UnitCosts* const costs, CostsOf(candidate));
  const Estimate least = LeastOf(candidate, *costs);
  if (!least.fits()) return least;
  ASSIGN_OR_RETURN(const JobSpec way, ResolveJob(JobOf(job_, candidate)));
  const ParallelismSpec& parallelism = way.parallelism();
  Shape shape = ShapeOf(parallelism, way.training().micro_batch_size());
  const Places& places = PlacesOf(shape);
  ASSIGN_OR_RETURN(const int to_cut, MicroBatchesToCut(way, shape));
  ASSIGN_OR_RETURN(
      const KnownOrder* const cut_by,
      OrderOf(parallelism, std::min(to_cut, kMore * shape.pipeline)));
  StageLayout layout = LayoutOf(parallelism, *costs, *cut_by, places,
                                std::min(to_cut, kMore * shape.pipeline));
  ASSIGN_OR_RETURN(const Stages* stages,
                   StagesOf(parallelism, *costs, places, layout));
  ASSIGN_OR_RETURN(const std::vector<Replicas> replicas,
                   ReplicasOf(way, shape, *costs, *stages));
  // The fewest that a replica has: no rank keeps less of them.
  int64_t in_all = 0;
  for (const Replicas& alike : replicas) {
    shape.micro_batches =
        in_all == 0 ? alike.micro_batches
                    : std::min(shape.micro_batches, alike.micro_batches);
    in_all += alike.micro_batches;
  }
  ASSIGN_OR_RETURN(KnownOrder* const order,
                   OrderOf(parallelism, std::min(shape.micro_batches,
                                                 kMore * shape.pipeline)));
  Estimate estimate;
  const std::vector<int64_t> needs =
      SetMemory(parallelism, shape, *costs, *stages, places, *order, estimate);
  Stages that_fit;
  if (!estimate.fits() && MayMoveUnits(parallelism, places)) {
    ASSIGN_OR_RETURN(that_fit,
                     FitStages(parallelism, shape, *costs, places, *order,
                               std::move(layout), *stages, needs, estimate));
    stages = &that_fit;
  }
  if (!estimate.fits()) {
    estimate.seconds = LeastSeconds(shape, *costs);
    return estimate;
  }
  Timed timed;  // of those that are ready last
  OrderTimes times;
  double last = -1;
  for (const Replicas& alike : replicas) {
    Shape own = shape;
    own.micro_batches = alike.micro_batches;
    Timed of_alike = TimeStages(way, own, *costs, *stages, *alike.places);
    ASSIGN_OR_RETURN(OrderTimes run, RunOrder(parallelism, own, of_alike));
    const double end = *std::max_element(run.ends.begin(), run.ends.end());
    if (end <= last) continue;
    last = end;
    timed = std::move(of_alike);
    times = std::move(run);
  }
  estimate.seconds = last + std::max(0.0, timed.first_gather) +
                     SecondsBehind(way, shape, *costs, *stages, timed, times);
  estimate.length = LengthOf(shape, *costs);
  estimate.length.micro_batches = static_cast<int>(in_all);
  estimate.length.is_even = replicas.size() == 1;
  return estimate;
}

}  // namespace troupe
