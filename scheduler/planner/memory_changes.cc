#include "scheduler/planner/memory_changes.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/plan/model.h"
#include "proto/plan/precision.h"
#include "scheduler/layouts/zero.h"
#include "scheduler/planner/check_devices.h"
#include "scheduler/tiers/loss_chunks.h"
#include "scheduler/tiers/recompute.h"

namespace troupe {
namespace {

// A field that says where something rests.
struct TierField {
  const char* name;
  const std::string& (MemorySpec::*get)() const;
  void (*set)(const std::string& tier, MemorySpec& memory);
};
constexpr TierField kTierFields[] = {
    {"optimizer", &MemorySpec::optimizer,
     [](const std::string& tier, MemorySpec& m) { m.set_optimizer(tier); }},
    {"parameters", &MemorySpec::parameters,
     [](const std::string& tier, MemorySpec& m) { m.set_parameters(tier); }},
    {"gradients", &MemorySpec::gradients,
     [](const std::string& tier, MemorySpec& m) { m.set_gradients(tier); }},
    {"activations", &MemorySpec::activations,
     [](const std::string& tier, MemorySpec& m) { m.set_activations(tier); }}};

// To keep less for backward.
void AddRecompute(const std::string& now, std::vector<MemoryChange>& changes) {
  for (const std::string& mode : LeanerRecomputeModes(now)) {
    changes.push_back({{kRecomputeField, mode}, [mode](JobSpec& job) {
                         job.mutable_memory()->mutable_recompute()->set_mode(
                             mode);
                       }});
  }
}

// To compute the loss of fewer tokens at once. Each chunk adds to the head's
// gradient: in a narrow type it would be rounded with each.
void AddLossChunks(const JobSpec& job, std::vector<MemoryChange>& changes) {
  if (IsSynthetic(job.model()) || GradientType(job.training()) != F32) return;
  const int64_t now = job.memory().loss_chunk_tokens();
  const int64_t all = int64_t{job.training().micro_batch_size()} *
                      job.training().sequence_length();
  for (const int64_t tokens : TriedLossChunks()) {
    if (tokens >= (now == 0 ? all : now)) continue;
    changes.push_back({{kLossChunksField, absl::StrCat(tokens)},
                       [tokens](JobSpec& changed) {
                         changed.mutable_memory()->set_loss_chunk_tokens(
                             tokens);
                       }});
  }
}

// To deal what replicas, and ranks of a batch or a sequence, hold alike over
// them.
void AddZero(const ParallelismSpec& now, std::vector<MemoryChange>& changes) {
  if (!MayDeal(now) || now.servers() > 0) return;
  for (int zero = now.zero() + 1; zero <= 3; ++zero) {
    const auto make = [zero](JobSpec& job) {
      ParallelismSpec& parallelism = *job.mutable_parallelism();
      if (parallelism.zero() == 0) parallelism.clear_zero_size();
      parallelism.clear_reshard_after_forward();
      parallelism.set_zero(zero);
    };
    changes.push_back({{kZeroField, absl::StrCat(zero)}, make});
  }
}

// To let something rest elsewhere: further down, or up where a lower tier is
// full.
void AddTiers(const MemorySpec& now,
              const std::vector<WorkerDescription>& workers,
              std::vector<MemoryChange>& changes) {
  for (const auto& [tier, name] :
       {std::make_pair(DEVICE, "device"), std::make_pair(HOST, "host"),
        std::make_pair(NVME, "nvme")}) {
    if (!HaveTier(workers, tier)) continue;
    for (const TierField& field : kTierFields) {
      if ((now.*field.get)() == name) continue;
      changes.push_back({{absl::StrCat("memory.", field.name), name},
                         [set = field.set, name = name](JobSpec& job) {
                           set(name, *job.mutable_memory());
                         }});
    }
  }
}

// To keep no copies of the state in the hosts' memory.
void AddCopies(const RecoverySpec& now, std::vector<MemoryChange>& changes) {
  if (now.copies() == 0) return;
  changes.push_back(
      {{.field = kCopiesField,
        .value = "0",
        .price = "a lost worker costs what no checkpoint has"},
       [](JobSpec& job) { job.mutable_recovery()->set_copies(0); }});
}

}  // namespace

std::vector<MemoryChange> MemoryChangesOf(
    const JobSpec& job, const std::vector<WorkerDescription>& workers) {
  std::vector<MemoryChange> changes;
  AddRecompute(job.memory().recompute().mode(), changes);
  AddLossChunks(job, changes);
  AddZero(job.parallelism(), changes);
  AddTiers(job.memory(), workers, changes);
  AddCopies(job.recovery(), changes);
  return changes;
}

}  // namespace troupe
