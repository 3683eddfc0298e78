// Attention by cuDNN's kernels, which are faster than ours where a GPU's tensor
// cores want more than mma.sync. What it is asked for is a graph
// (cudnn_attention_graph.h), for which it chooses kernels and compiles some:
// seconds for each shape, so the answers are kept.
#ifndef TROUPE_OPS_CUDA_CUDNN_ATTENTION_H_
#define TROUPE_OPS_CUDA_CUDNN_ATTENTION_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "ops/cuda/cudnn_attention_graph.h"
#include "ops/cuda/cudnn_library.h"
#include "ops/cuda/first_launches.h"

namespace troupe::cuda {

// What a run has for an id of the graph: memory of the GPU or a number here.
struct CudnnBinding {
  int64_t id = 0;
  const void* at = nullptr;
};

// Thread-safe. Of one device.
class CudnnAttention {
 public:
  // The one that the graphs were tried with. Before 9.16 lengths that are no
  // multiples of 128 need a mask of their own.
  static constexpr size_t kVersionMin = 91900;
  // Shapes, those for which there is no plan among them: a calibration has two
  // dozen, a model's training a few. None is forgotten, since kernels that run
  // must stay loaded.
  static constexpr size_t kShapesMax = 128;

  // NotFound where this machine has no cuDNN, FailedPrecondition where it is
  // too old. Borrows the launches.
  static absl::StatusOr<std::unique_ptr<CudnnAttention>> Create(
      FirstLaunches& launches);
  ~CudnnAttention();
  CudnnAttention(const CudnnAttention&) = delete;
  CudnnAttention& operator=(const CudnnAttention&) = delete;

  // Null where cuDNN has no kernels for the shape, which the log says once, or
  // where kShapesMax are known. The first call for a shape runs alone. Valid as
  // long as this is. REQUIRES that the device is the current one.
  const CudnnPlan* Find(const CudnnAttentionShape& shape);

  // `workspace` is of the plan's bytes.
  absl::Status Enqueue(const CudnnPlan& plan,
                       absl::Span<const CudnnBinding> bindings, void* workspace,
                       cudaStream_t stream);

 private:
  CudnnAttention(const CudnnLibrary& library, FirstLaunches& launches)
      : library_(library), launches_(launches) {}
  absl::StatusOr<CudnnPlan> Plan(const CudnnAttentionShape& shape)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const CudnnLibrary library_;
  FirstLaunches& launches_;
  absl::Mutex mutex_;
  cudnnHandle_t handle_ ABSL_GUARDED_BY(mutex_) = nullptr;  // made when used
  absl::flat_hash_map<CudnnAttentionShape, std::unique_ptr<CudnnPlan>> plans_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace troupe::cuda

#endif  // TROUPE_OPS_CUDA_CUDNN_ATTENTION_H_
