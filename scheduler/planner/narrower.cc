#include "scheduler/planner/narrower.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/types/optional.h"
#include "proto/plan/ranks_needed.h"
#include "proto/plan/sharing.h"
#include "scheduler/layouts/layouts.h"
#include "scheduler/layouts/replicas.h"
#include "scheduler/layouts/resolve_rows.h"
#include "scheduler/planner/resolve.h"
#include "scheduler/planner/resolve_micro_batches.h"
#include "scheduler/planner/resolve_zero_weights.h"
#include "scheduler/planner/ways.h"

namespace troupe {
namespace {

struct Extent {
  int data = 1;
  int pipeline = 1;
  int servers = 0;
  std::vector<int> shared;  // ranks, by field (FactorFields)

  int64_t replica() const {  // ranks of one
    int64_t product = pipeline;
    for (const int of_field : shared) product *= of_field;
    return product;
  }
  int64_t ranks() const { return (data + servers) * replica(); }
};

std::vector<int> SharedOf(const ParallelismSpec& parallelism) {
  std::vector<int> shared;
  for (const RankField& field : FactorFields()) {
    shared.push_back(RanksOf(parallelism, field.name));
  }
  return shared;
}

// Whether only replicas are fewer. Else nothing is left of what is said of
// some units, and micro-batches are whole.
bool HasFullReplicas(const Extent& extent, const ParallelismSpec& full) {
  return extent.pipeline == full.pipeline() && extent.shared == SharedOf(full);
}

// Whether a way is one costs what resolving a job does, and is asked of at most
// this number of ways.
constexpr int kTriedMax = 64;

// Those up to `most`.
std::vector<int> DivisorsUpTo(int number, int most) {
  std::vector<int> divisors = DivisorsOf(number);
  divisors.erase(std::upper_bound(divisors.begin(), divisors.end(), most),
                 divisors.end());
  return divisors;
}

// Ranks of fields that go on with fewer; of the others there are as many as in
// the job, or 1 where anything else is less.
std::vector<std::vector<int>> FewerShared(const ParallelismSpec& full) {
  std::vector<std::vector<int>> all = {{}};
  for (const RankField& field : FactorFields()) {
    const int ranks = RanksOf(full, field.name);
    const LayoutRow& row = RowOf(full, field.name);
    const std::vector<int> sizes =
        row.fewer == nullptr ? std::vector<int>{ranks} : row.fewer(ranks);
    std::vector<std::vector<int>> longer;
    for (const std::vector<int>& shared : all) {
      for (const int size : sizes) {
        longer.push_back(shared);
        longer.back().push_back(size);
      }
    }
    all = std::move(longer);
  }
  return all;
}

void LeaveOutWhatIsWholeOrNone(const ParallelismSpec& full, Extent& extent) {
  if (HasFullReplicas(extent, full)) return;
  for (size_t f = 0; f < extent.shared.size(); ++f) {
    const LayoutRow& row = RowOf(full, FactorFields()[f].name);
    if (row.fewer == nullptr) extent.shared[f] = 1;
  }
}

// In the order in which they are tried.
std::vector<Extent> ExtentsOf(const JobSpec& resolved, int workers) {
  const ParallelismSpec& full = resolved.parallelism();
  const int least = resolved.elastic().min_workers();
  // All others would be refused, unless replicas need not run equally many.
  const int batch = resolved.training().global_batch_size();
  std::vector<int> replicas = DivisorsUpTo(batch, workers);
  if (full.micro_batch_split() == kSplitBySpeed || TakesTurns(resolved)) {
    replicas.resize(TakesTurns(resolved) ? workers : std::min(batch, workers));
    std::iota(replicas.begin(), replicas.end(), 1);
  }
  std::vector<Extent> extents;
  for (const std::vector<int>& shared : FewerShared(full)) {
    for (int pipeline = 1; pipeline <= full.pipeline(); ++pipeline) {
      Extent extent = {
          .pipeline = pipeline, .servers = full.servers(), .shared = shared};
      LeaveOutWhatIsWholeOrNone(full, extent);
      for (const int data : replicas) {
        extent.data = data;
        if (extent.ranks() < least || extent.ranks() > workers) continue;
        extents.push_back(extent);
      }
    }
  }
  // Most ranks first; of equally many, most along the mesh's last fields.
  std::sort(
      extents.begin(), extents.end(), [](const Extent& a, const Extent& b) {
        const auto order = [](const Extent& e) {
          return std::make_tuple(
              e.ranks(), std::vector<int>(e.shared.rbegin(), e.shared.rend()),
              e.pipeline);
        };
        return order(a) > order(b);
      });
  return extents;
}

void SetShared(const Extent& extent, ParallelismSpec& parallelism) {
  for (size_t f = 0; f < extent.shared.size(); ++f) {
    const std::string& field = FactorFields()[f].name;
    if (extent.shared[f] > 1) {
      SetRanks(field, extent.shared[f], parallelism);
    } else {
      ClearField(field, parallelism);
      ClearMethod(field, parallelism);
    }
  }
}

// Nothing: the job cannot be cut so.
absl::optional<JobSpec> Narrowed(const JobSpec& job, const JobSpec& resolved,
                                 const Extent& extent) {
  JobSpec way = job;
  ParallelismSpec& parallelism = *way.mutable_parallelism();
  // What was given is for that number of replicas; by_speed is for any.
  if (!parallelism.micro_batches().empty() &&
      extent.data != resolved.parallelism().data()) {
    ClearMicroBatches(way);
  }
  if (!parallelism.zero_weights().empty() &&
      extent.data != resolved.parallelism().data()) {
    ClearZeroWeights(parallelism);
  }
  parallelism.set_data(extent.data);
  FitFieldsOfData(way);
  if (extent.pipeline != resolved.parallelism().pipeline()) {
    parallelism.set_pipeline(extent.pipeline);
    parallelism.clear_stages();
    if (extent.pipeline == 1) {
      parallelism.clear_pipeline_schedule();
      parallelism.clear_virtual_stages();
    }
  }
  if (!HasFullReplicas(extent, resolved.parallelism())) {
    parallelism.clear_strategies();
    SetShared(extent, parallelism);
  }
  *way.mutable_training() = resolved.training();
  FitMicroBatch(way);
  if (!ResolveJob(way).ok()) parallelism.clear_zero_size();
  // Nothing may be gathered any more.
  if (!ResolveJob(way).ok()) way.mutable_memory()->clear_unsharded_bytes();
  if (!ResolveJob(way).ok()) return absl::nullopt;
  return way;
}

}  // namespace

std::vector<JobSpec> NarrowerWays(const JobSpec& job, int workers) {
  if (!job.has_elastic()) return {};
  const absl::StatusOr<JobSpec> resolved = ResolveJob(job);
  // A newer build may refuse what the one before it took.
  if (!resolved.ok()) return {};
  const int fewer = std::min(workers, RanksNeeded(*resolved) - 1);
  std::vector<JobSpec> ways;
  int tried = 0;
  for (const Extent& extent : ExtentsOf(*resolved, fewer)) {
    absl::optional<JobSpec> way = Narrowed(job, *resolved, extent);
    if (way.has_value()) ways.push_back(*std::move(way));
    if (static_cast<int>(ways.size()) == kNarrowerMax) break;
    if (++tried == kTriedMax) break;
  }
  return ways;
}

}  // namespace troupe
