// What one calling thread has of its own on a GPU: a stream, in which all that
// it enqueues keeps its order, the pinned memory through which its copies from
// and to pageable memory go, and cuBLASLt's handle and workspace.
//
// Errors are statuses; a stream that could not be made has none of the rest.
#ifndef TROUPE_OPS_CUDA_THREAD_STREAM_H_
#define TROUPE_OPS_CUDA_THREAD_STREAM_H_

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <array>
#include <cstddef>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ops/device.h"
#include "proto/base/gpu_limits.h"

namespace troupe {

// For products on the stream to which it belongs.
struct Blas {
  static constexpr size_t kWorkspaceBytes = kGpuProductWorkspaceBytes;

  cublasLtHandle_t handle = nullptr;
  void* workspace = nullptr;  // of kWorkspaceBytes
  // Of a thread that was prepared to work again and again: it is worth its time
  // to look for the fastest kernels.
  bool prepared = false;
};

class ThreadStream {
 public:
  // On the device that is current. Of streams that have work, it prefers those
  // of a higher priority, 0 and as many above as it can tell apart.
  static absl::StatusOr<std::unique_ptr<ThreadStream>> Create(int priority);
  ThreadStream(const ThreadStream&) = delete;
  ~ThreadStream();

  cudaStream_t get() const { return stream_; }

  // Copies of host memory, pinned or not. Pinned memory is copied as it is;
  // pageable memory passes through pinned chunks, so that its copies too run at
  // the bus's speed: CopyFromHost returns when the last chunk is filled,
  // CopyToHost when all has arrived.
  absl::Status CopyFromHost(void* to, const void* from, size_t bytes);
  absl::Status CopyToHost(void* to, const void* from, size_t bytes);

  // Made on the first call.
  absl::StatusOr<Blas> GetBlas();

  // Makes what is not there yet of what such work needs. The stream is.
  absl::Status Prepare(QueueWork work);

 private:
  struct Chunk {
    void* memory = nullptr;
    cudaEvent_t copied = nullptr;
  };

  ThreadStream() = default;
  // Makes the chunks where they are not there yet.
  absl::Status MakeChunks();

  cudaStream_t stream_ = nullptr;
  std::array<Chunk, 2> chunks_;
  Blas blas_;
};

}  // namespace troupe

#endif  // TROUPE_OPS_CUDA_THREAD_STREAM_H_
