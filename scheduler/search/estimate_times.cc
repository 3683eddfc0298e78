// How long the stages of a candidate take, its order of them, and what comes
// behind the last pass.
#include <algorithm>
#include <cmath>
#include <map>

#include "proto/base/status.h"
#include "scheduler/layouts/zero.h"
#include "scheduler/search/estimate.h"

namespace troupe {
namespace {

constexpr double kBytesOfMegabyte = 1 << 20;
constexpr int64_t kScalarsBytes = 5 * 8;  // the sums that every plan has

// Micro-batches of the shorter one of the orders of which a longer one is told,
// in pipelines: once it is full, each further micro-batch takes as long as the
// one before.
constexpr int kFewer = 2;

int64_t PartOf(int64_t bytes, double share) {
  return static_cast<int64_t>(static_cast<double>(bytes) * share);
}

}  // namespace

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
      const GroupCosts::Group dealt = {.count = shape.SlicesOf(unit),
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
    const double beside =
        (each_use ? gathers : 0) + (deals && zero.gradients ? scatters : 0);
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
      const int slices = shape.SlicesOf(unit);
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
      const auto bucket = std::max<double>(
          parallelism.bucket_megabytes() * kBytesOfMegabyte, gradients / units);
      const double own =
          deals ? units : std::max(1.0, std::ceil(gradients / bucket));
      buckets += own;
      sums +=
          (zero.gradients && deals ? of_units.scatters / units
                                   : of_units.scatters) +
          own * groups_.SecondsOf({.count = dealt / of_units.slices,
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

}  // namespace troupe
