#include "proto/plan/replica_share.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/plan/mesh.h"
#include "proto/plan/sharing.h"

namespace troupe {
namespace {

using Counts = google::protobuf::RepeatedField<int32_t>;

int64_t Total(Counts::const_iterator begin, Counts::const_iterator end) {
  return std::accumulate(begin, end, int64_t{0});
}

// One for each replica, of which none is idle and the most is known; behind
// them those of servers, which run none.
struct PlacesOnData {
  int replicas = 1;
  int servers = 0;
};
absl::Status CheckCounts(const Counts& counts, const PlacesOnData& places,
                         int most, const char* what) {
  const auto end =
      counts.begin() + std::clamp(places.replicas, 0, counts.size());
  const bool fit = counts.size() == places.replicas + places.servers &&
                   *std::min_element(counts.begin(), end) > 0 &&
                   *std::max_element(counts.begin(), end) == most &&
                   Total(end, counts.end()) == 0;
  if (fit) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "[", absl::StrJoin(counts, ", "), "] are no ", what, " of ",
      places.replicas, " replicas, at least one each and ", most, " at most",
      places.servers == 0
          ? ""
          : absl::StrCat(", and of ", places.servers, " servers, 0 each")));
}

}  // namespace

int64_t MicroBatchSequences(const Plan& plan) {
  int64_t sequences = plan.job().training().micro_batch_size();
  for (const RankField& field : RankFields()) {
    if (field.of_data) sequences *= AxisSize(plan.mesh(), field.name);
  }
  return sequences;
}

int ReplicaOf(const Mesh& mesh, int rank) {
  return CoordinateOn(mesh, kIslandAxis, rank) * AxisSize(mesh, kReplicaAxis) +
         CoordinateOn(mesh, kReplicaAxis, rank);
}

int ReplicaCount(const Mesh& mesh) {
  return AxisSize(mesh, kIslandAxis) * AxisSize(mesh, kReplicaAxis);
}

ReplicaShare ShareOf(const Derived& derived, Program::Kind program,
                     int replica) {
  const bool validates = program == Program::VALIDATE;
  const Counts& counts = validates ? derived.replica_validation_micro_batches()
                                   : derived.replica_micro_batches();
  if (counts.empty()) {
    const int count = validates ? derived.validation_micro_batches()
                                : derived.micro_batches();
    return {.first = int64_t{replica} * count, .count = count};
  }
  // A step of its own begins with its first micro-batch.
  const bool alone = derived.takes_turns() && !validates;
  return {.first = alone ? 0 : Total(counts.begin(), counts.begin() + replica),
          .count = counts[replica]};
}

std::vector<std::vector<int>> ReplicaKinds(const Plan& plan) {
  const Counts& counts = plan.derived().replica_micro_batches();
  const Counts& weights = plan.job().parallelism().zero_weights();
  std::map<std::pair<int, int>, std::vector<int>, std::greater<>> alike;
  for (int d = 0; d < std::max(counts.size(), weights.size()); ++d) {
    alike[{d < counts.size() ? counts[d] : 0,
           d < weights.size() ? weights[d] : 0}]
        .push_back(d);
  }
  if (alike.empty()) return {std::vector<int>()};
  std::vector<std::vector<int>> kinds;
  for (auto& [kind, places] : alike) kinds.push_back(std::move(places));
  return kinds;
}

absl::Status CheckReplicaShares(const Plan& plan) {
  const Derived& derived = plan.derived();
  const Counts& counts = derived.replica_micro_batches();
  const Counts& validation = derived.replica_validation_micro_batches();
  if (counts.empty() && validation.empty()) return absl::OkStatus();
  const int servers = plan.job().parallelism().servers();
  const PlacesOnData places = {
      .replicas = AxisSize(plan.mesh(), kReplicaAxis) - servers,
      .servers = servers};
  absl::Status status =
      CheckCounts(counts, places, derived.micro_batches(), "micro-batches");
  if (!status.ok()) return status;
  if (derived.validation_micro_batches() > 0) {
    status = CheckCounts(validation, places, derived.validation_micro_batches(),
                         "validation micro-batches");
    if (!status.ok()) return status;
  }
  const TrainingSpec& training = plan.job().training();
  const int64_t sequences = MicroBatchSequences(plan);
  const int64_t micro_batches = derived.takes_turns()
                                    ? derived.micro_batches()
                                    : Total(counts.begin(), counts.end());
  const int64_t samples = micro_batches * sequences;
  if (samples == training.global_batch_size()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "micro-batches [", absl::StrJoin(counts, ", "), "] of ", sequences,
      " sequences are ", samples, " in a step, and the global batch has ",
      training.global_batch_size()));
}

}  // namespace troupe
