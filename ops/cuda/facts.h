// What a GPU is, for people and for the planner: read without computing on it.
#ifndef TROUPE_OPS_CUDA_FACTS_H_
#define TROUPE_OPS_CUDA_FACTS_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace troupe {

struct GpuFacts {
  std::string name;  // "NVIDIA H200"
  std::string uuid;  // "GPU-5ad1...", the same from every process and container
  int64_t memory_bytes = 0;
  int64_t free_bytes = 0;  // now; the runtime's own share is taken already
  // Columns of a head that attention takes there; see attention_limits.h.
  int head_dim_max_f32 = 0;
  int head_dim_max_narrow = 0;  // in bf16 and fp16
  int driver_version = 0;  // the newest CUDA that the driver knows: 13000
  // Of the library that the loader finds, "9.19.0"; empty: none, which costs
  // time, not results, as there are kernels of our own for all that it does.
  std::string cudnn_version;
  // To the host, as the kernel says it: "PCIe 32.0 GT/s x16"; empty: unknown.
  std::string link;
};

// Errors as NewCudaDevice's.
absl::StatusOr<GpuFacts> ReadGpuFacts(int ordinal);

// Its free_bytes alone, in microseconds.
absl::StatusOr<int64_t> FreeGpuBytes(int ordinal);

}  // namespace troupe

#endif  // TROUPE_OPS_CUDA_FACTS_H_
