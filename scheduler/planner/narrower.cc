#include "scheduler/planner/narrower.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "absl/types/optional.h"
#include "proto/base/check.h"
#include "proto/plan/axes.h"
#include "proto/plan/ranks_needed.h"
#include "scheduler/planner/resolve.h"
#include "scheduler/planner/resolve_micro_batches.h"
#include "scheduler/planner/ways.h"

namespace troupe {
namespace {

struct Extent {
  int data = 1;
  int pipeline = 1;
  int batch = 1;
  int context = 1;
  int tensor = 1;

  int ranks() const { return data * pipeline * batch * context * tensor; }
};

// Whether only replicas are fewer. Else nothing is left of what is said of
// some units, and micro-batches are whole.
bool HasFullReplicas(const Extent& extent, const ParallelismSpec& full) {
  return extent.pipeline == full.pipeline() &&
         extent.context == full.context() && extent.tensor == full.tensor();
}

// Whether a way is one costs what resolving a job does, and is asked of so many
// at most.
constexpr int kTriedMax = 64;

// Those up to `most`.
std::vector<int> DivisorsOf(int number, int most) {
  std::vector<int> divisors;
  for (int d = 1; d <= std::min(number, most); ++d) {
    if (number % d == 0) divisors.push_back(d);
  }
  return divisors;
}

// Squares and cubes of ranks are whole, or none.
std::vector<int> TensorSizes(const ParallelismSpec& parallelism) {
  if (TensorMethodOf(parallelism) == "1d") {
    return DivisorsOf(parallelism.tensor(), parallelism.tensor());
  }
  return {1, parallelism.tensor()};
}

// In the order in which they are tried.
std::vector<Extent> ExtentsOf(const JobSpec& resolved, int workers) {
  const ParallelismSpec& full = resolved.parallelism();
  const int least = resolved.elastic().min_workers();
  // All others would be refused, unless replicas need not run equally many.
  const int batch = resolved.training().global_batch_size();
  std::vector<int> replicas = DivisorsOf(batch, workers);
  if (full.micro_batch_split() == kSplitBySpeed) {
    replicas.resize(std::min(batch, workers));
    std::iota(replicas.begin(), replicas.end(), 1);
  }
  std::vector<Extent> extents;
  for (const int tensor : TensorSizes(full)) {
    for (const int context : DivisorsOf(full.context(), full.context())) {
      for (int pipeline = 1; pipeline <= full.pipeline(); ++pipeline) {
        Extent extent = {
            .pipeline = pipeline, .context = context, .tensor = tensor};
        if (HasFullReplicas(extent, full)) extent.batch = full.batch();
        const int replica = extent.ranks();
        for (const int data : replicas) {
          if (data * replica < least || data > workers / replica) continue;
          extent.data = data;
          extents.push_back(extent);
        }
      }
    }
  }
  std::sort(
      extents.begin(), extents.end(), [](const Extent& a, const Extent& b) {
        const auto order = [](const Extent& e) {
          return std::make_tuple(e.ranks(), e.tensor, e.context, e.pipeline);
        };
        return order(a) > order(b);
      });
  return extents;
}

// Nothing: the job cannot be cut so.
absl::optional<JobSpec> Narrowed(const JobSpec& job, const JobSpec& resolved,
                                 const Extent& extent) {
  JobSpec way = job;
  ParallelismSpec& parallelism = *way.mutable_parallelism();
  // What was given is for so many replicas; by_speed is for any.
  if (!parallelism.micro_batches().empty() &&
      extent.data != resolved.parallelism().data()) {
    ClearMicroBatches(way);
  }
  parallelism.set_data(extent.data);
  FitExperts(way);
  parallelism.set_context(extent.context);
  parallelism.set_tensor(extent.tensor);
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
    parallelism.clear_batch();
  }
  if (extent.tensor == 1) {
    parallelism.clear_sequence_parallel();
    parallelism.clear_tensor_method();
    parallelism.clear_tensor_depth();
  }
  if (extent.context == 1) {
    parallelism.clear_context_method();
    parallelism.clear_ulysses_size();
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
  CHECK_OK(resolved.status());
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
