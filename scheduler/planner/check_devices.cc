#include "scheduler/planner/check_devices.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/base/gpu_limits.h"
#include "proto/base/status.h"
#include "proto/plan/precision.h"
#include "scheduler/planner/resolve_servers.h"

namespace troupe {
namespace {

constexpr size_t kNamesMax = 4;

// "worker-0, worker-1 and 3 more".
std::string NamesText(std::vector<std::string> names) {
  const size_t more = names.size() > kNamesMax ? names.size() - kNamesMax : 0;
  names.resize(names.size() - more);
  const std::string list = absl::StrJoin(names, ", ");
  return more == 0 ? list : absl::StrCat(list, " and ", more, " more");
}

// Columns of a head.
int64_t HeadDimMax(const Gpu& gpu, ElementType type) {
  const int64_t most =
      type == F32 ? gpu.head_dim_max_f32() : gpu.head_dim_max_narrow();
  return most == 0 ? kGpuHeadDimMax : most;
}

// The first field that wants the nvme tier; empty: none does.
std::string FieldOnNvme(const MemorySpec& memory) {
  const std::pair<const char*, const std::string&> fields[] = {
      {"optimizer", memory.optimizer()},
      {"parameters", memory.parameters()},
      {"activations", memory.activations()}};
  for (const auto& [name, tier] : fields) {
    if (tier == "nvme") return absl::StrCat("memory.", name);
  }
  return "";
}

bool HasTier(const WorkerDescription& worker, Tier tier) {
  for (const TierBudget& budget : worker.budgets()) {
    if (budget.tier() == tier && budget.bytes() > 0) return true;
  }
  return false;
}

}  // namespace

absl::Status CheckDevices(const std::vector<WorkerDescription>& workers) {
  std::vector<std::string> gpus;
  std::vector<std::string> cpus;
  for (const WorkerDescription& worker : workers) {
    (worker.has_gpu() ? gpus : cpus).push_back(worker.name());
  }
  if (gpus.empty() || cpus.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "parallelism.data: ", workers.size(), " ranks would take ", gpus.size(),
      gpus.size() == 1 ? " worker" : " workers", " on GPUs (", NamesText(gpus),
      ") and ", cpus.size(), " on CPUs (", NamesText(cpus),
      "), and all would wait for the CPUs in each step; use ", gpus.size(),
      ", or stop the workers of one kind"));
}

// Of a head of queries and keys, and the field that says it.
struct HeadWidth {
  int64_t columns = 0;
  const char* field = "";
};
HeadWidth KeyWidth(const ModelSpec& model) {
  if (model.has_qk_rope_head_dim()) {
    return {model.qk_nope_head_dim() + model.qk_rope_head_dim(),
            "model.qk_nope_head_dim: "};
  }
  if (model.has_head_dim()) return {model.head_dim(), "model.head_dim: "};
  return {model.hidden_size() / model.num_attention_heads(),
          "model.num_attention_heads: "};
}

std::string NameOf(const WorkerDescription& worker) {
  return worker.gpu().name().empty()
             ? worker.name()
             : absl::StrCat(worker.name(), ", ", worker.gpu().name());
}

// Attention's kernels for GPUs take values as wide as keys.
absl::Status CheckValues(const ModelSpec& model,
                         const std::vector<WorkerDescription>& workers) {
  const int64_t keys = KeyWidth(model).columns;
  if (!model.has_v_head_dim() || model.v_head_dim() == keys) {
    return absl::OkStatus();
  }
  for (const WorkerDescription& worker : workers) {
    if (!worker.has_gpu()) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "model.v_head_dim: attention on a GPU (", NameOf(worker),
        ") takes heads of values as wide as those of keys, not ",
        model.v_head_dim(), " columns beside ", keys, "; use workers on CPUs"));
  }
  return absl::OkStatus();
}

absl::Status CheckHeads(const JobSpec& job,
                        const std::vector<WorkerDescription>& workers) {
  const ModelSpec& model = job.model();
  if (model.num_attention_heads() <= 0) return absl::OkStatus();
  RETURN_IF_ERROR(CheckValues(model, workers));
  const auto [width, field] = KeyWidth(model);
  const ElementType type = ComputeType(job.training());
  for (const WorkerDescription& worker : workers) {
    if (!worker.has_gpu() || width <= HeadDimMax(worker.gpu(), type)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(field, "heads of ", width, " columns, and attention in ",
                     PrecisionName(type), " on a GPU (", NameOf(worker),
                     ") takes up to ", HeadDimMax(worker.gpu(), type),
                     "; use more heads, or workers on CPUs"));
  }
  return absl::OkStatus();
}

bool HaveTier(const std::vector<WorkerDescription>& workers, Tier tier) {
  return std::all_of(workers.begin(), workers.end(),
                     [tier](const WorkerDescription& worker) {
                       return worker.budgets().empty() || HasTier(worker, tier);
                     });
}

absl::Status CheckNvme(const JobSpec& job,
                       const std::vector<WorkerDescription>& workers) {
  const std::string field = FieldOnNvme(job.memory());
  if (field.empty()) return absl::OkStatus();
  for (const WorkerDescription& worker : workers) {
    if (worker.budgets().empty() || HasTier(worker, NVME)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        field, ": worker ", worker.name(),
        " has no nvme tier; start it with --nvme DIRECTORY --nvme-size BYTES, "
        "or use host"));
  }
  return absl::OkStatus();
}

absl::Status CheckWorkersFit(const JobSpec& job,
                             const std::vector<WorkerDescription>& workers) {
  RETURN_IF_ERROR(CheckDevices(workers));
  RETURN_IF_ERROR(CheckTurnsOn(job, workers));
  RETURN_IF_ERROR(CheckHeads(job, workers));
  return CheckNvme(job, workers);
}

}  // namespace troupe
