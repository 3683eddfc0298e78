#include "scheduler/planner/check_devices.h"

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/base/gpu_limits.h"
#include "proto/plan/precision.h"

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
      type == BF16 ? gpu.head_dim_max_bf16() : gpu.head_dim_max_f32();
  return most == 0 ? kGpuHeadDimMax : most;
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

absl::Status CheckHeads(const JobSpec& job,
                        const std::vector<WorkerDescription>& workers) {
  const ModelSpec& model = job.model();
  if (model.num_attention_heads() <= 0) return absl::OkStatus();
  const int64_t width = model.has_head_dim()
                            ? model.head_dim()
                            : model.hidden_size() / model.num_attention_heads();
  const ElementType type = ComputeType(job.training());
  for (const WorkerDescription& worker : workers) {
    if (!worker.has_gpu() || width <= HeadDimMax(worker.gpu(), type)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        model.has_head_dim() ? "model.head_dim: "
                             : "model.num_attention_heads: ",
        "heads of ", width, " columns, and attention in ",
        type == BF16 ? "bf16" : "f32", " on a GPU (",
        worker.gpu().name().empty()
            ? worker.name()
            : absl::StrCat(worker.name(), ", ", worker.gpu().name()),
        ") takes up to ", HeadDimMax(worker.gpu(), type),
        "; use more heads, or workers on CPUs"));
  }
  return absl::OkStatus();
}

}  // namespace troupe
