// The GPU as the kernels of this folder see it. Others use device.h.
//
// A call that fails is recorded and makes the device fail until StartAfresh:
// nothing more is enqueued, and each Synchronize returns the first error.
// Kernels therefore return void and check nothing themselves:
//
//   CudaDevice& cuda = CudaDevice::From(device);
//   cuda.Check(cudaMemsetAsync(to, 0, bytes, cuda.stream()),
//              "cudaMemsetAsync");
//
// Some errors stay whatever one does ("any further CUDA work will return the
// same error", as driver_types.h says of an illegal address and others).
// StartAfresh finds out by asking for a little work.
#ifndef TROUPE_OPS_CUDA_CUDA_DEVICE_H_
#define TROUPE_OPS_CUDA_CUDA_DEVICE_H_

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <unordered_map>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "ops/cuda/event_pool.h"
#include "ops/cuda/fault.h"
#include "ops/cuda/first_launches.h"
#include "ops/cuda/lt_products.h"
#include "ops/cuda/thread_stream.h"
#include "ops/device.h"
#include "ops/kept_choices.h"

namespace troupe {

namespace cuda {
class CudnnAttention;  // cudnn_attention.h
}

class CudaDevice final : public Device {
 public:
  // Borrows the choices, which may be null (device.h).
  static absl::StatusOr<std::unique_ptr<CudaDevice>> Create(
      int ordinal, KeptChoices* choices = nullptr);
  ~CudaDevice() override;

  // Attention is by cuDNN where it is there and has kernels for a call; the log
  // says where it is not. REQUIRES that nothing was called before.
  void UseCudnn();

  // The device behind a kernel's first argument.
  static CudaDevice& From(Device& device) {
    return static_cast<CudaDevice&>(device);
  }

  DeviceKind kind() const override { return DeviceKind::kCuda; }
  std::string Describe() const override;
  int threads() const override { return 1; }
  bool asynchronous() const override { return true; }
  const KernelTable& kernels() const override;
  absl::StatusOr<void*> Allocate(size_t bytes) override;
  // Waits until the device needs it no more.
  void Free(void* memory) override;
  absl::StatusOr<void*> AllocateHost(size_t bytes) override;
  void FreeHost(void* memory) override;
  void CopyWithin(void* to, const void* from, size_t bytes) override;
  void CopyFromHost(void* to, const void* from, size_t bytes) override;
  void CopyToHost(void* to, const void* from, size_t bytes) override;
  void Zero(void* to, size_t bytes) override;
  absl::Status Synchronize() override;
  absl::Status StartAfresh() override;
  std::unique_ptr<Fence> Record(FenceUse use) override;
  void WaitFor(const Fence& fence) override;
  void SetQueuePriority(int priority) override;
  void PrepareQueue(QueueWork work) override;
  void PrepareScratch(size_t bytes) override;

  // The calling thread's own; this device is then the current one, as the
  // runtime's calls want it. A default one where the device has failed.
  cudaStream_t stream();
  // What the thread has, whether the device has failed or not: work that was
  // enqueued before may be under way. Null: none.
  cudaStream_t made_stream();
  Blas blas();
  cuda::LtProducts& products() { return *products_; }
  // Of groups, whose sizes are others in each call.
  cuda::LtProducts& grouped_products() { return *grouped_products_; }
  // Null: attention is by our own kernels alone.
  cuda::CudnnAttention* cudnn_attention() { return cudnn_attention_.get(); }
  EventPool& events() { return events_; }
  FirstLaunches& first_launches() { return first_launches_; }
  // For calls of the runtime that take no stream; false where it has failed.
  bool MakeCurrent();
  // The first error, those of kernels included that have surely run.
  absl::Status status();

  // Record what is not a success, and say whether it was one.
  bool Check(cudaError_t code, absl::string_view call);
  bool Check(cublasStatus_t code, absl::string_view call);
  bool Check(absl::Status status);
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  // Fails with how much shared memory a block of `kernel` would take, and how
  // much one has here.
  void RefuseSharedBytes(const void* kernel, size_t bytes);

  // How many threads have called since StartAfresh, but for ids used again.
  size_t streams() const {
    absl::MutexLock lock(&mutex_);
    return streams_.size();
  }

  int ordinal() const { return ordinal_; }
  int multiprocessors() const { return properties_.multiProcessorCount; }
  // 80 for compute capability 8.0.
  int generation() const { return properties_.major * 10 + properties_.minor; }
  // That a block may have where its kernel asks for it.
  size_t shared_bytes_max() const { return properties_.sharedMemPerBlockOptin; }
  // Of blocks of scratch.h; keeps what is given back until StartAfresh.
  cudaMemPool_t scratch_pool() const { return scratch_pool_; }
  // For kernels that read indices.
  Fault* fault() const { return fault_; }

 private:
  // Those of a model's training step, its validation and some prompts.
  static constexpr size_t kProductsKept = 256;
  static constexpr size_t kGroupedProductsKept = 512;

  explicit CudaDevice(int ordinal);
  absl::Status Open(KeptChoices* choices);
  absl::Status CheckSharedMemory() const;
  // Null where the device has failed.
  ThreadStream* Mine();

  const int ordinal_;
  cudaDeviceProp properties_{};
  cudaMemPool_t scratch_pool_ = nullptr;
  Fault* fault_ = nullptr;
  EventPool events_;
  FirstLaunches first_launches_;
  std::unique_ptr<cuda::LtProducts> products_, grouped_products_;
  std::unique_ptr<cuda::CudnnAttention> cudnn_attention_;
  std::atomic<bool> failed_{false};
  mutable absl::Mutex mutex_;
  absl::Status error_ ABSL_GUARDED_BY(mutex_);
  // Of all threads that called since StartAfresh; those that have ended leave
  // theirs to the next of their id.
  std::unordered_map<std::thread::id, std::unique_ptr<ThreadStream>> streams_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace troupe

#endif  // TROUPE_OPS_CUDA_CUDA_DEVICE_H_
