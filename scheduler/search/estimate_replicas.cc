// How fast the places of a pipeline are, and replicas that differ in that.
#include <algorithm>
#include <limits>
#include <set>
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

bool Differ(const std::vector<double>& slowness) {
  const auto [least, most] =
      std::minmax_element(slowness.begin(), slowness.end());
  return *most > (1 + kEqualSpeeds) * *least;
}

}  // namespace

void Estimator::Places::Add(absl::Span<const double> of_ranks,
                            int64_t least_room) {
  double speed = 0;
  for (const double slower : of_ranks) speed += 1 / slower;
  slowness.push_back(*std::max_element(of_ranks.begin(), of_ranks.end()));
  speeds.push_back(speed / static_cast<double>(of_ranks.size()));
  room.push_back(least_room);
}

// Of the first worker's time for the same work, alone on its processor.
const std::vector<double>& Estimator::SlownessOf(int ranks) {
  const auto [found, is_new] = slowness_.try_emplace(ranks);
  if (!is_new) return found->second;
  const ElementType type = ComputeType(job_.training());
  const auto rate = [type](const WorkerDescription& worker) {
    return BestProductRate(worker.calibration(), type) *
           std::max(1, worker.threads()) /
           std::max(1, worker.calibration().threads());
  };
  const Seats seats =
      SeatsOf(absl::MakeConstSpan(workers_).first(ranks), /*lanes=*/1);
  const double first = rate(workers_[0]);
  for (int r = 0; r < ranks; ++r) {
    const double own = rate(workers_[r]);
    const double slower = first > 0 && own > 0 ? first / own : 1;
    found->second.push_back(slower / seats.FairShare(r));
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
  const absl::Span<const double> slowness = SlownessOf(shape.ranks);
  const int each = shape.ranks / shape.pipeline;
  for (int p = 0; p < shape.pipeline; ++p) {
    found->second.Add(slowness.subspan(p * each, each), RoomOf(p * each, each));
  }
  return found->second;
}

// Replicas are the outer axis within a place.
const std::vector<Estimator::Places>& Estimator::PlacesOfReplicas(
    const Shape& shape, int replicas) {
  const auto [found, is_new] =
      by_replica_.try_emplace({shape.ranks, shape.pipeline, replicas});
  if (!is_new) return found->second;
  const absl::Span<const double> slowness = SlownessOf(shape.ranks);
  const int each = shape.ranks / shape.pipeline;
  const int of_replica = each / replicas;
  for (int d = 0; d < replicas; ++d) {
    Places& places = found->second.emplace_back();
    for (int p = 0; p < shape.pipeline; ++p) {
      const int first = p * each + d * of_replica;
      places.Add(slowness.subspan(first, of_replica),
                 RoomOf(first, of_replica));
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

// As the planner splits them (scheduler/planner/split_by_speed.h).
absl::StatusOr<std::vector<Estimator::Replicas>> Estimator::ReplicasOf(
    const JobSpec& way, const Shape& shape) {
  const ParallelismSpec& parallelism = way.parallelism();
  if (parallelism.micro_batch_split() != kSplitBySpeed) {
    return std::vector<Replicas>{
        {.places = &PlacesOf(shape), .micro_batches = shape.micro_batches}};
  }
  ASSIGN_OR_RETURN(const ReplicaBatch batch, BatchOf(parallelism));
  RETURN_IF_ERROR(CheckSplit(way, batch));
  const std::vector<Places>& places =
      PlacesOfReplicas(shape, troupe::ReplicasOf(parallelism));
  std::vector<double> slowness;
  for (const Places& own : places) {
    slowness.push_back(
        *std::max_element(own.slowness.begin(), own.slowness.end()));
  }
  const int total = MicroBatchesOfStep(way);
  if (!Differ(slowness)) {
    if (total % (batch.each * places.size()) == 0) {
      return FieldError("parallelism.micro_batch_split",
                        "by_speed is an even split where replicas are equally "
                        "fast");
    }
    slowness.assign(slowness.size(), 1);
  }
  const std::vector<int> counts = SplitBySpeed(slowness, total, batch);
  std::vector<Replicas> all;
  std::set<std::pair<int, std::vector<double>>> known;
  for (size_t d = 0; d < places.size(); ++d) {
    if (!known.emplace(counts[d], places[d].slowness).second) continue;
    all.push_back({.places = &places[d], .micro_batches = counts[d]});
  }
  return all;
}

bool Estimator::AreUnlike() {
  return Differ(SlownessOf(static_cast<int>(workers_.size())));
}

}  // namespace troupe
