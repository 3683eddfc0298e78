#include "scheduler/search/estimate.h"

#include <algorithm>
#include <cmath>
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

constexpr double kBytesOfMegabyte = 1 << 20;
constexpr int64_t kScalarsBytes = 5 * 8;  // the sums that every plan has

// Micro-batches of the shorter one of the orders of which a longer one is told,
// in pipelines: once it is full, each further micro-batch takes as long as the
// one before.
constexpr int kFewer = 2;

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

int64_t PartOf(int64_t bytes, double share) {
  return static_cast<int64_t>(static_cast<double>(bytes) * share);
}

}  // namespace

// What stages take on the places that hold them.
struct Estimator::Timed {
  std::vector<StageSeconds> stages;
  double handover = 0;
  // Of the stage that gathers longest, behind what its first forward hides.
  double first_gather = 0;
};

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
  return shape;
}

int Estimator::Shape::SlicesOf(const ParallelismSpec& way,
                               const UnitCost& unit) const {
  if (way.zero() == 0) return 1;
  const bool all = !way.has_zero_size() || way.zero_size() == DealtMost(way);
  return all ? DealtOf(unit) : way.zero_size();
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

absl::StatusOr<const Estimator::Stages*> Estimator::StagesOf(
    const ParallelismSpec& way, const UnitCosts& costs, const KnownOrder& order,
    const Places& places) {
  StageLayout layout = {.holders = order.holders,
                        .micro_batches = 1,
                        .seconds = {},
                        .memory = absl::nullopt};
  if (!places.alike && way.pipeline() > 1) {
    layout.seconds = SecondsAt(places.speeds, costs);
    if (!AreUnequal(layout.seconds)) layout.seconds.clear();
  }
  const bool unequal = !layout.seconds.empty();
  // By what units take, of the first one: a larger micro-batch changes no cut.
  std::string key = absl::StrJoin(way.stages(), ",");
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

Estimator::Timed Estimator::TimeStages(const JobSpec& way, const Shape& shape,
                                       const UnitCosts& costs,
                                       const Stages& stages,
                                       const Places& places) {
  const ParallelismSpec& parallelism = way.parallelism();
  const ZeroRow zero = ZeroRowOf(parallelism);
  Timed timed;
  int64_t handed_over = 0;
  for (size_t s = 0; s < stages.units.size(); ++s) {
    PassSeconds forward;
    PassSeconds backward;
    PassSeconds input;
    PassSeconds weight;
    StageSeconds& seconds = timed.stages.emplace_back();
    bool deals = false;
    double gathers = 0;
    double scatters = 0;
    for (const int u : stages.units[s]) {
      const UnitCost& unit = costs.kinds[costs.kind_of_unit[u]];
      forward.Add(unit.forward);
      backward.Add(unit.backward);
      input.Add(unit.input);
      weight.Add(unit.weight);
      const GroupCosts::Group dealt = {.count = shape.SlicesOf(parallelism,
                                                               unit),
                                       .stride = shape.StrideOf(unit)};
      if (dealt.count == 1) continue;
      deals = true;
      const double share = unit.ShareDealt(dealt.count);
      gathers += groups_.SecondsOf(
          dealt, {.collective = ALL_GATHER,
                  .bytes = PartOf(unit.parameter_bytes, share),
                  .narrow = narrow_parameters_});
      scatters +=
          groups_.SecondsOf(dealt, {.collective = REDUCE_SCATTER,
                                    .bytes = PartOf(unit.gradient_bytes, share),
                                    .narrow = narrow_gradients_});
    }
    for (const int place : stages.holders[s]) {
      for (const auto& [speed, count] : places.speeds[place]) {
        seconds.forward = std::max(seconds.forward, forward.With(speed));
        seconds.backward = std::max(seconds.backward, backward.With(speed));
        seconds.input = std::max(seconds.input, input.With(speed));
        seconds.weight = std::max(seconds.weight, weight.With(speed));
      }
    }
    const bool each_use = deals && zero.gathered_for_each_use;
    if (deals && !each_use) {
      timed.first_gather =
          std::max(timed.first_gather, gathers - seconds.forward);
    }
    const double beside = (each_use ? gathers : 0) +
                          (deals && zero.gradients ? scatters : 0);
    if (each_use) seconds.forward = std::max(seconds.forward, gathers);
    seconds.backward = std::max(seconds.backward, beside);
    seconds.input = std::max(seconds.input, each_use ? gathers : 0);
    if (deals && zero.gradients) {
      seconds.weight = std::max(seconds.weight, scatters);
    }
    if (s + 1 < stages.units.size()) {
      handed_over = std::max(
          handed_over,
          costs.kinds[costs.kind_of_unit[stages.units[s].back()]].output_bytes);
    }
  }
  timed.handover =
      groups_.SecondsOf({.count = shape.pipeline > 1 ? 2 : 1,
                         .stride = shape.ranks / shape.pipeline},
                        {.collective = SHIFT, .bytes = handed_over});
  return timed;
}

const OrderTimes& Estimator::TimesOf(const Timed& timed, KnownOrder& order) {
  if (order.stages != timed.stages || order.handover != timed.handover) {
    order.stages = timed.stages;
    order.handover = timed.handover;
    order.times = TimeOrder(order.order, timed.stages, timed.handover);
  }
  return order.times;
}

absl::StatusOr<OrderTimes> Estimator::RunOrder(const ParallelismSpec& way,
                                               const Shape& shape,
                                               const Timed& timed) {
  const int count = shape.micro_batches;
  const int fewer = kFewer * shape.pipeline;
  const int more = kMore * shape.pipeline;
  if (count <= more) {
    ASSIGN_OR_RETURN(KnownOrder* const order, OrderOf(way, count));
    return TimesOf(timed, *order);
  }
  if (shape.pipeline > 1) {
    // Whether there is one of all.
    const int left = fewer + count % shape.pipeline;
    RETURN_IF_ERROR(OrderOf(way, left).status());
  }
  ASSIGN_OR_RETURN(KnownOrder* const shorter, OrderOf(way, fewer));
  ASSIGN_OR_RETURN(KnownOrder* const longer, OrderOf(way, more));
  const OrderTimes& first = TimesOf(timed, *shorter);
  OrderTimes times = TimesOf(timed, *longer);
  for (size_t rank = 0; rank < times.ends.size(); ++rank) {
    const double each = (times.ends[rank] - first.ends[rank]) / (more - fewer);
    times.ends[rank] += each * (count - more);
  }
  return times;
}

// From the last pass of the slowest rank to the end of the step.
double Estimator::SecondsBehind(const JobSpec& way, const Shape& shape,
                                const UnitCosts& costs, const Stages& stages,
                                const Timed& timed, const OrderTimes& times) {
  const ParallelismSpec& parallelism = way.parallelism();
  const ZeroRow zero = ZeroRowOf(parallelism);
  const bool deals = parallelism.zero() > 0;
  const Places& places = PlacesOf(shape);
  std::vector<double> summed(shape.pipeline, 0);
  std::vector<double> updates(shape.pipeline, 0);
  // Of units that as many ranks hold alike.
  struct Sums {
    int slices = 1;
    int stride = 1;
    int units = 0;
    int64_t gradients = 0;
    double scatters = 0;
  };
  for (size_t s = 0; s < stages.units.size(); ++s) {
    const auto unit_count = static_cast<double>(stages.units[s].size());
    std::map<int, Sums> by_dealt;
    PassSeconds update;
    for (const int u : stages.units[s]) {
      const UnitCost& unit = costs.kinds[costs.kind_of_unit[u]];
      Sums& of_units = by_dealt[shape.DealtOf(unit)];
      const int slices = shape.SlicesOf(parallelism, unit);
      of_units.slices = slices;
      of_units.stride = shape.StrideOf(unit);
      ++of_units.units;
      of_units.gradients += unit.gradient_bytes;
      update.Add(unit.step,
                 slices > 1 && zero.states ? unit.ShareAtRest(slices) : 1);
      update.Add(unit.norm, 1.0 / shape.DealtOf(unit));
      if (!deals) continue;
      of_units.scatters += groups_.SecondsOf(
          {.count = slices, .stride = of_units.stride},
          {.collective = REDUCE_SCATTER,
           .bytes = PartOf(unit.gradient_bytes, unit.ShareDealt(slices)),
           .narrow = narrow_gradients_});
    }
    double sums = 0;
    double buckets = 0;
    for (const auto& [dealt, of_units] : by_dealt) {
      const auto gradients = static_cast<double>(of_units.gradients);
      const double units = of_units.units;
      const auto bucket =
          std::max<double>(parallelism.bucket_megabytes() * kBytesOfMegabyte,
                           gradients / units);
      const double own =
          deals ? units : std::max(1.0, std::ceil(gradients / bucket));
      buckets += own;
      sums +=
          (zero.gradients && deals ? of_units.scatters / units
                                   : of_units.scatters) +
          own * groups_.SecondsOf(
                    {.count = dealt / of_units.slices,
                     .stride = of_units.stride * of_units.slices},
                    {.collective = ALL_REDUCE,
                     .bytes = static_cast<int64_t>(
                         static_cast<double>(of_units.gradients /
                                             of_units.slices) /
                         own),
                     .narrow = narrow_gradients_});
    }
    const double hidden =
        timed.stages[s].backward * (unit_count - 1) / unit_count;
    for (const int place : stages.holders[s]) {
      summed[place] += std::max(sums - hidden, sums / buckets);
      double slowest = 0;
      for (const auto& [speed, count] : places.speeds[place]) {
        slowest = std::max(slowest, update.With(speed));
      }
      updates[place] += slowest;
    }
  }
  double last = 0;
  double end = 0;
  double update = 0;
  for (int place = 0; place < shape.pipeline; ++place) {
    last = std::max(last, times.ends[place]);
    end = std::max(end, times.ends[place] + summed[place]);
    update = std::max(update, updates[place]);
  }
  const double scalars =
      groups_.SecondsOf({.count = shape.ranks, .stride = 1},
                        {.collective = ALL_REDUCE, .bytes = kScalarsBytes});
  // A table that the first stage and the last share.
  double tied = 0;
  if (costs.tied_to >= 0 && shape.pipeline > 1) {
    tied = groups_.SecondsOf(
        {.count = 2,
         .stride = shape.ranks / shape.pipeline * (shape.pipeline - 1)},
        {.collective = ALL_REDUCE,
         .bytes = costs.kinds[costs.tied_to].gradient_bytes,
         .narrow = narrow_gradients_});
  }
  return end - last + update + scalars + tied;
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
  ASSIGN_OR_RETURN(const Stages* const stages,
                   StagesOf(parallelism, *costs, *cut_by, places));
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
  SetMemory(parallelism, shape, *costs, *stages, places, *order, estimate);
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
