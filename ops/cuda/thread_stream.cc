#include "ops/cuda/thread_stream.h"

#include <algorithm>
#include <cstring>

#include "ops/cuda/status.h"
#include "proto/base/status.h"

namespace troupe {
namespace {

// Long enough that the bus, not the latency of a copy, sets the pace.
constexpr size_t kChunkBytes = size_t{4} << 20;

absl::StatusOr<bool> IsPageable(const void* memory) {
  cudaPointerAttributes attributes;
  RETURN_IF_ERROR(ToStatus(cudaPointerGetAttributes(&attributes, memory),
                           "cudaPointerGetAttributes"));
  return attributes.type == cudaMemoryTypeUnregistered;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ThreadStream>> ThreadStream::Create(
    int priority) {
  auto stream = std::unique_ptr<ThreadStream>(new ThreadStream);
  // CUDA counts downwards: `first` is below `last`.
  int last = 0;
  int first = 0;
  RETURN_IF_ERROR(ToStatus(cudaDeviceGetStreamPriorityRange(&last, &first),
                           "cudaDeviceGetStreamPriorityRange"));
  RETURN_IF_ERROR(ToStatus(
      cudaStreamCreateWithPriority(&stream->stream_, cudaStreamNonBlocking,
                                   std::clamp(-priority, first, last)),
      "cudaStreamCreateWithPriority"));
  return stream;
}

ThreadStream::~ThreadStream() {
  if (stream_ != nullptr) cudaStreamSynchronize(stream_);
  if (blas_.handle != nullptr) cublasLtDestroy(blas_.handle);
  cudaFree(blas_.workspace);
  for (const Chunk& chunk : chunks_) {
    if (chunk.copied != nullptr) cudaEventDestroy(chunk.copied);
    cudaFreeHost(chunk.memory);
  }
  if (stream_ != nullptr) cudaStreamDestroy(stream_);
}

absl::Status ThreadStream::MakeChunks() {
  for (Chunk& chunk : chunks_) {
    if (chunk.memory == nullptr) {
      RETURN_IF_ERROR(ToStatus(cudaMallocHost(&chunk.memory, kChunkBytes),
                               "cudaMallocHost"));
    }
    if (chunk.copied == nullptr) {
      RETURN_IF_ERROR(ToStatus(
          cudaEventCreateWithFlags(
              &chunk.copied, cudaEventBlockingSync | cudaEventDisableTiming),
          "cudaEventCreateWithFlags"));
    }
  }
  return absl::OkStatus();
}

absl::Status ThreadStream::CopyFromHost(void* to, const void* from,
                                        size_t bytes) {
  ASSIGN_OR_RETURN(const bool pageable, IsPageable(from));
  if (!pageable) {
    return ToStatus(
        cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream_),
        "cudaMemcpyAsync");
  }
  RETURN_IF_ERROR(MakeChunks());
  for (size_t begin = 0; begin < bytes; begin += kChunkBytes) {
    const Chunk& chunk = chunks_[begin / kChunkBytes % chunks_.size()];
    const size_t count = std::min(kChunkBytes, bytes - begin);
    // The copy that used this chunk last, also one of an earlier call.
    RETURN_IF_ERROR(
        ToStatus(cudaEventSynchronize(chunk.copied), "cudaEventSynchronize"));
    std::memcpy(chunk.memory, static_cast<const char*>(from) + begin, count);
    RETURN_IF_ERROR(
        ToStatus(cudaMemcpyAsync(static_cast<char*>(to) + begin, chunk.memory,
                                 count, cudaMemcpyHostToDevice, stream_),
                 "cudaMemcpyAsync"));
    RETURN_IF_ERROR(
        ToStatus(cudaEventRecord(chunk.copied, stream_), "cudaEventRecord"));
  }
  return absl::OkStatus();
}

absl::Status ThreadStream::CopyToHost(void* to, const void* from,
                                      size_t bytes) {
  ASSIGN_OR_RETURN(const bool pageable, IsPageable(to));
  if (!pageable) {
    return ToStatus(
        cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream_),
        "cudaMemcpyAsync");
  }
  RETURN_IF_ERROR(MakeChunks());
  const auto chunk_of = [&](size_t begin) {
    return chunks_[begin / kChunkBytes % chunks_.size()];
  };
  const auto enqueue = [&](size_t begin) -> absl::Status {
    RETURN_IF_ERROR(
        ToStatus(cudaMemcpyAsync(chunk_of(begin).memory,
                                 static_cast<const char*>(from) + begin,
                                 std::min(kChunkBytes, bytes - begin),
                                 cudaMemcpyDeviceToHost, stream_),
                 "cudaMemcpyAsync"));
    return ToStatus(cudaEventRecord(chunk_of(begin).copied, stream_),
                    "cudaEventRecord");
  };
  // While one chunk is emptied here, the bus fills the next.
  if (bytes > 0) RETURN_IF_ERROR(enqueue(0));
  for (size_t begin = 0; begin < bytes; begin += kChunkBytes) {
    if (begin + kChunkBytes < bytes)
      RETURN_IF_ERROR(enqueue(begin + kChunkBytes));
    RETURN_IF_ERROR(ToStatus(cudaEventSynchronize(chunk_of(begin).copied),
                             "cudaEventSynchronize"));
    std::memcpy(static_cast<char*>(to) + begin, chunk_of(begin).memory,
                std::min(kChunkBytes, bytes - begin));
  }
  return absl::OkStatus();
}

absl::StatusOr<Blas> ThreadStream::GetBlas() {
  if (blas_.handle == nullptr) {
    RETURN_IF_ERROR(ToStatus(cublasLtCreate(&blas_.handle), "cublasLtCreate"));
  }
  if (blas_.workspace == nullptr) {
    RETURN_IF_ERROR(
        AllocationStatus(cudaMalloc(&blas_.workspace, Blas::kWorkspaceBytes),
                         "cudaMalloc", Blas::kWorkspaceBytes));
  }
  return blas_;
}

absl::Status ThreadStream::Prepare(QueueWork work) {
  if (work == QueueWork::kFences) return absl::OkStatus();
  RETURN_IF_ERROR(MakeChunks());
  if (work == QueueWork::kCopies) return absl::OkStatus();
  blas_.prepared = true;
  return GetBlas().status();
}

}  // namespace troupe
