// How fast the places of a pipeline are, and replicas that differ in that.
#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "proto/plan/fields.h"
#include "proto/plan/precision.h"
#include "scheduler/layouts/replicas.h"
#include "scheduler/planner/resolve_micro_batches.h"
#include "scheduler/search/estimate.h"
#include "scheduler/simulate/place_seconds.h"
#include "scheduler/simulate/seats.h"
#include "scheduler/simulate/stand_ins.h"

namespace troupe {
namespace {

int64_t DeviceBytesOf(const WorkerDescription& worker) {
  if (worker.budgets().empty()) return std::numeric_limits<int64_t>::max();
  int64_t bytes = 0;
  for (const TierBudget& budget : worker.budgets()) {
    if (budget.tier() == DEVICE) bytes += budget.bytes();
  }
  return bytes;
}

// Machines of which products differ by less are priced as one.
constexpr double kAboutAsFast = 0.05;
constexpr size_t kMachinesMax = 8;

// How many times as fast one is as the other, or that one as this.
double Apart(double a, double b) {
  return a > 0 && b > 0 ? std::max(a / b, b / a) : 1;
}

bool Differ(const std::vector<double>& seconds) {
  const auto [least, most] =
      std::minmax_element(seconds.begin(), seconds.end());
  return *most > (1 + kEqualSpeeds) * *least;
}

}  // namespace

void Estimator::Places::Add(absl::Span<const RankSpeed> of_ranks,
                            int64_t least_room) {
  std::map<RankSpeed, int>& place = speeds.emplace_back();
  for (const RankSpeed& speed : of_ranks) {
    ++place[speed];
    alike = alike && speed == speeds.front().begin()->first;
  }
  room.push_back(least_room);
}

void Estimator::FindMachines() {
  const ElementType type = ComputeType(job_.training());
  const auto rate = [type](const WorkerDescription& worker) {
    return BestProductRate(worker.calibration(), type) *
           std::max(1, worker.threads()) /
           std::max(1, worker.calibration().threads());
  };
  std::vector<double> rates;  // of those that are priced
  std::map<std::string, Machine> known;
  for (const WorkerDescription& worker : workers_) {
    const auto [found, is_new] = known.try_emplace(absl::StrCat(
        worker.threads(), "/", worker.calibration().SerializeAsString()));
    Machine& machine = found->second;
    if (is_new) {
      const double own = rate(worker);
      const auto nearest = std::min_element(
          rates.begin(), rates.end(),
          [own](double a, double b) { return Apart(own, a) < Apart(own, b); });
      if (nearest == rates.end() || (rates.size() < kMachinesMax &&
                                     Apart(own, *nearest) > 1 + kAboutAsFast)) {
        machine.number = static_cast<int>(rates.size());
        rates.push_back(own);
        if (machine.number > 0) machines_.push_back(&worker);
      } else {
        machine.number = static_cast<int>(nearest - rates.begin());
        if (own > 0 && *nearest > 0) machine.faster = own / *nearest;
      }
    }
    machine_of_.push_back(machine);
  }
  std::vector<double> seconds;  // of the same products
  for (const RankSpeed& speed : SpeedsOf(static_cast<int>(workers_.size()))) {
    const double own = rates[speed.machine] * speed.share;
    seconds.push_back(own > 0 ? 1 / own : 1);
  }
  unlike_ = !seconds.empty() && Differ(seconds);
}

const std::vector<RankSpeed>& Estimator::SpeedsOf(int ranks) {
  const auto [found, is_new] = speeds_.try_emplace(ranks);
  if (!is_new) return found->second;
  const Seats seats =
      SeatsOf(absl::MakeConstSpan(workers_).first(ranks), /*lanes=*/1);
  for (int r = 0; r < ranks; ++r) {
    const Machine& machine = machine_of_[r];
    found->second.push_back({.machine = machine.number,
                             .share = machine.faster * seats.FairShare(r)});
  }
  return found->second;
}

int64_t Estimator::RoomOf(int first_rank, int count) const {
  int64_t room = std::numeric_limits<int64_t>::max();
  for (int r = first_rank; r < first_rank + count; ++r) {
    room = std::min(room, DeviceBytesOf(workers_[r]));
  }
  return room;
}

const Estimator::Places& Estimator::PlacesOf(const Shape& shape) {
  const auto [found, is_new] =
      places_.try_emplace({shape.ranks, shape.pipeline});
  if (!is_new) return found->second;
  const absl::Span<const RankSpeed> speeds = SpeedsOf(shape.ranks);
  const int each = shape.ranks / shape.pipeline;
  for (int p = 0; p < shape.pipeline; ++p) {
    found->second.Add(speeds.subspan(p * each, each), RoomOf(p * each, each));
  }
  return found->second;
}

// Replicas are the outer axis within a place.
const std::vector<Estimator::Places>& Estimator::PlacesOfReplicas(
    const Shape& shape, int replicas) {
  const auto [found, is_new] =
      by_replica_.try_emplace({shape.ranks, shape.pipeline, replicas});
  if (!is_new) return found->second;
  const absl::Span<const RankSpeed> speeds = SpeedsOf(shape.ranks);
  const int each = shape.ranks / shape.pipeline;
  const int of_replica = each / replicas;
  for (int d = 0; d < replicas; ++d) {
    Places& places = found->second.emplace_back();
    for (int p = 0; p < shape.pipeline; ++p) {
      const int first = p * each + d * of_replica;
      places.Add(speeds.subspan(first, of_replica), RoomOf(first, of_replica));
    }
  }
  return found->second;
}

absl::StatusOr<ReplicaBatch> Estimator::BatchOf(const ParallelismSpec& way) {
  const std::string key = absl::StrCat(
      way.pipeline_schedule(), "/", way.pipeline(), "/", way.virtual_stages());
  const auto found = batches_.find(key);
  if (found != batches_.end()) return found->second;
  return batches_.emplace(key, ReplicaBatchOf(way)).first->second;
}

absl::StatusOr<int> Estimator::MicroBatchesToCut(const JobSpec& way,
                                                 const Shape& shape) {
  const ParallelismSpec& parallelism = way.parallelism();
  if (parallelism.micro_batch_split() != kSplitBySpeed) {
    return shape.micro_batches;
  }
  ASSIGN_OR_RETURN(const ReplicaBatch batch, BatchOf(parallelism));
  RETURN_IF_ERROR(CheckSplit(way, batch));
  const std::vector<int> counts = SplitBySpeed(
      std::vector<double>(shape.replicas, 1), MicroBatchesOfStep(way), batch);
  return *std::max_element(counts.begin(), counts.end());
}

double Estimator::SecondsOfSlowest(const Places& places, const UnitCosts& costs,
                                   const Stages& stages) {
  double most = 0;
  for (size_t place = 0; place < places.speeds.size(); ++place) {
    PassSeconds passes;
    for (size_t s = 0; s < stages.units.size(); ++s) {
      const std::vector<int>& holders = stages.holders[s];
      if (std::count(holders.begin(), holders.end(), place) == 0) continue;
      for (const int u : stages.units[s]) {
        const UnitCost& unit = costs.kinds[costs.kind_of_unit[u]];
        const double times = 1.0 / static_cast<double>(holders.size());
        passes.Add(unit.forward, times);
        passes.Add(unit.backward, times);
      }
    }
    for (const auto& [speed, count] : places.speeds[place]) {
      most = std::max(most, passes.ComputeOn(speed.machine) / speed.share);
    }
  }
  return most;
}

// As the planner splits them (scheduler/planner/split_by_speed.h).
absl::StatusOr<std::vector<Estimator::Replicas>> Estimator::ReplicasOf(
    const JobSpec& way, const Shape& shape, const UnitCosts& costs,
    const Stages& stages) {
  const ParallelismSpec& parallelism = way.parallelism();
  if (parallelism.micro_batch_split() != kSplitBySpeed) {
    return std::vector<Replicas>{
        {.places = &PlacesOf(shape), .micro_batches = shape.micro_batches}};
  }
  ASSIGN_OR_RETURN(const ReplicaBatch batch, BatchOf(parallelism));
  const std::vector<Places>& places = PlacesOfReplicas(shape, shape.replicas);
  std::vector<double> seconds;
  for (const Places& own : places) {
    seconds.push_back(SecondsOfSlowest(own, costs, stages));
  }
  const int total = MicroBatchesOfStep(way);
  if (!Differ(seconds)) {
    if (total % (batch.each * places.size()) == 0) {
      return FieldError("parallelism.micro_batch_split",
                        "by_speed is an even split where replicas are equally "
                        "fast");
    }
    seconds.assign(seconds.size(), 1);
  }
  const std::vector<int> counts = SplitBySpeed(seconds, total, batch);
  std::vector<Replicas> all;
  for (size_t d = 0; d < places.size(); ++d) {
    const bool is_known =
        std::any_of(all.begin(), all.end(), [&](const Replicas& other) {
          return other.micro_batches == counts[d] &&
                 other.places->speeds == places[d].speeds;
        });
    if (is_known) continue;
    all.push_back({.places = &places[d], .micro_batches = counts[d]});
  }
  return all;
}

}  // namespace troupe
