#include "ops/cuda/device.h"

#include <stdlib.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ops/cuda/attention_limits.h"
#include "ops/cuda/cuda_device.h"
#include "ops/cuda/cuda_fence.h"
#include "ops/cuda/cudnn_attention.h"
#include "ops/cuda/kernels.h"
#include "ops/cuda/scratch.h"
#include "ops/cuda/status.h"
#include "proto/base/log.h"
#include "proto/base/status.h"

namespace troupe {
namespace {

constexpr int kGenerationMin = 80;  // third_party/cuda.bzl

// Streams of which no two share a queue of the GPU's, the most that there are
// (the default is 8). Of two that share one, what is enqueued second waits for
// the first: an operation that waits for a peer holds up what that peer waits
// for. A lane has a stream, and NCCL some of its own.
constexpr char kHardwareQueues[] = "32";

absl::Status ToStatus(const Fault& fault) {
  switch (fault.kind) {
    case FaultKind::kNone:
      return absl::OkStatus();
    case FaultKind::kToken:
      return absl::InternalError(absl::StrCat("embedding: token ", fault.value,
                                              " at ", fault.index,
                                              ", vocabulary of ", fault.limit));
    case FaultKind::kTarget:
      return absl::InternalError(absl::StrCat("cross entropy: target ",
                                              fault.value, " at ", fault.index,
                                              ", vocabulary of ", fault.limit));
    case FaultKind::kExpert:
      return absl::InternalError(absl::StrCat("router: expert ", fault.value,
                                              " at ", fault.index, ", of ",
                                              fault.limit));
  }
  return absl::InternalError("a kernel met an index out of range");
}

}  // namespace

bool BuiltWithCuda() { return true; }

absl::StatusOr<std::unique_ptr<Device>> NewCudaDevice(
    const CudaDeviceOptions& options) {
  ASSIGN_OR_RETURN(std::unique_ptr<CudaDevice> device,
                   CudaDevice::Create(options.ordinal, options.choices));
  if (options.cudnn) device->UseCudnn();
  return device;
}

CudaDevice::CudaDevice(int ordinal) : ordinal_(ordinal) {}

absl::StatusOr<std::unique_ptr<CudaDevice>> CudaDevice::Create(
    int ordinal, KeptChoices* choices) {
  auto device = std::unique_ptr<CudaDevice>(new CudaDevice(ordinal));
  RETURN_IF_ERROR(device->Open(choices));
  return device;
}

void CudaDevice::UseCudnn() {
  auto attention = cuda::CudnnAttention::Create(first_launches_);
  if (attention.ok()) {
    cudnn_attention_ = *std::move(attention);
  } else {
    LogInfo(absl::StrCat("attention is by our own kernels: ",
                         attention.status().message()));
  }
}

absl::Status CudaDevice::Open(KeptChoices* choices) {
  // Read when the process first calls CUDA.
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", kHardwareQueues, /*overwrite=*/0);
  RETURN_IF_ERROR(
      troupe::ToStatus(cudaInitDevice(ordinal_, cudaDeviceScheduleBlockingSync,
                                      cudaInitDeviceFlagsAreValid),
                       "cudaInitDevice"));
  RETURN_IF_ERROR(troupe::ToStatus(cudaSetDevice(ordinal_), "cudaSetDevice"));
  RETURN_IF_ERROR(
      troupe::ToStatus(cudaGetDeviceProperties(&properties_, ordinal_),
                       "cudaGetDeviceProperties"));
  if (generation() < kGenerationMin) {
    return absl::FailedPreconditionError(absl::StrCat(
        Describe(), " is of compute capability ", properties_.major, ".",
        properties_.minor, ": this build needs 8.0 (A100) or later"));
  }
  RETURN_IF_ERROR(CheckSharedMemory());
  products_ = std::make_unique<cuda::LtProducts>(
      kProductsKept, first_launches_,
      cuda::LtChoices{.kept = choices, .gpu = properties_.name});
  grouped_products_ =
      std::make_unique<cuda::LtProducts>(kGroupedProductsKept, first_launches_);
  cudaMemPoolProps pool{};
  pool.allocType = cudaMemAllocationTypePinned;
  pool.location.type = cudaMemLocationTypeDevice;
  pool.location.id = ordinal_;
  RETURN_IF_ERROR(troupe::ToStatus(cudaMemPoolCreate(&scratch_pool_, &pool),
                                   "cudaMemPoolCreate"));
  uint64_t kept = std::numeric_limits<uint64_t>::max();
  RETURN_IF_ERROR(troupe::ToStatus(
      cudaMemPoolSetAttribute(scratch_pool_, cudaMemPoolAttrReleaseThreshold,
                              &kept),
      "cudaMemPoolSetAttribute"));
  void* fault = nullptr;
  RETURN_IF_ERROR(troupe::ToStatus(
      cudaHostAlloc(&fault, sizeof(Fault), cudaHostAllocMapped),
      "cudaHostAlloc"));
  fault_ = new (fault) Fault{};
  return absl::OkStatus();
}

absl::Status CudaDevice::CheckSharedMemory() const {
  for (const DType type : {DType::kF32, DType::kBF16, DType::kF16}) {
    if (cuda::AttentionHeadDimMax(type, shared_bytes_max()) > 0) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        Describe(), " gives a block ", shared_bytes_max(),
        " bytes of shared memory: attention in ", DTypeName(type), " needs ",
        cuda::AttentionSharedBytes(type, 1), " for the narrowest heads"));
  }
  return absl::OkStatus();
}

CudaDevice::~CudaDevice() {
  cudaSetDevice(ordinal_);
  {
    absl::MutexLock lock(&mutex_);
    streams_.clear();
  }
  cudnn_attention_.reset();
  if (scratch_pool_ != nullptr) cudaMemPoolDestroy(scratch_pool_);
  cudaFreeHost(fault_);
}

std::string CudaDevice::Describe() const {
  return absl::StrCat("cuda:", ordinal_, ": ", properties_.name, ", ",
                      properties_.multiProcessorCount, " multiprocessors, ",
                      properties_.totalGlobalMem >> 20, " MiB");
}

const KernelTable& CudaDevice::kernels() const { return cuda::kKernels; }

ThreadStream* CudaDevice::Mine() {
  if (!MakeCurrent()) return nullptr;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = streams_.find(std::this_thread::get_id());
    if (found != streams_.end()) return found->second.get();
  }
  // The driver may take its time for this; other threads need not wait.
  absl::StatusOr<std::unique_ptr<ThreadStream>> made =
      ThreadStream::Create(/*priority=*/0);
  if (!Check(made.status())) return nullptr;
  absl::MutexLock lock(&mutex_);
  return (streams_[std::this_thread::get_id()] = *std::move(made)).get();
}

void CudaDevice::SetQueuePriority(int priority) {
  if (!MakeCurrent()) return;
  absl::StatusOr<std::unique_ptr<ThreadStream>> made =
      ThreadStream::Create(priority);
  if (!Check(made.status())) return;
  absl::MutexLock lock(&mutex_);
  streams_[std::this_thread::get_id()] = *std::move(made);
}

void CudaDevice::PrepareQueue(QueueWork work) {
  ThreadStream* const mine = Mine();
  if (mine != nullptr) Check(mine->Prepare(work));
}

// What a block gives back the pool keeps, and cuts up for smaller ones.
void CudaDevice::PrepareScratch(size_t bytes) {
  const Scratch all(*this, bytes);
}

bool CudaDevice::MakeCurrent() {
  return !failed() && Check(cudaSetDevice(ordinal_), "cudaSetDevice");
}

cudaStream_t CudaDevice::stream() {
  const ThreadStream* mine = Mine();
  return mine == nullptr ? nullptr : mine->get();
}

cudaStream_t CudaDevice::made_stream() {
  cudaSetDevice(ordinal_);
  absl::MutexLock lock(&mutex_);
  const auto found = streams_.find(std::this_thread::get_id());
  return found == streams_.end() ? nullptr : found->second->get();
}

Blas CudaDevice::blas() {
  ThreadStream* mine = Mine();
  if (mine == nullptr) return {};
  const absl::StatusOr<Blas> blas = mine->GetBlas();
  return Check(blas.status()) ? *blas : Blas{};
}

bool CudaDevice::Check(cudaError_t code, absl::string_view call) {
  return code == cudaSuccess || Check(troupe::ToStatus(code, call));
}

bool CudaDevice::Check(cublasStatus_t code, absl::string_view call) {
  return code == CUBLAS_STATUS_SUCCESS || Check(troupe::ToStatus(code, call));
}

bool CudaDevice::Check(absl::Status status) {
  if (status.ok()) return true;
  absl::MutexLock lock(&mutex_);
  if (error_.ok()) error_ = std::move(status);
  failed_.store(true, std::memory_order_release);
  return false;
}

absl::StatusOr<void*> CudaDevice::Allocate(size_t bytes) {
  RETURN_IF_ERROR(troupe::ToStatus(cudaSetDevice(ordinal_), "cudaSetDevice"));
  void* memory = nullptr;
  const cudaError_t code = cudaMalloc(&memory, std::max<size_t>(bytes, 1));
  RETURN_IF_ERROR(AllocationStatus(code, "cudaMalloc", bytes));
  return memory;
}

void CudaDevice::Free(void* memory) {
  cudaSetDevice(ordinal_);
  Check(cudaFree(memory), "cudaFree");
}

absl::StatusOr<void*> CudaDevice::AllocateHost(size_t bytes) {
  RETURN_IF_ERROR(troupe::ToStatus(cudaSetDevice(ordinal_), "cudaSetDevice"));
  void* memory = nullptr;
  cudaError_t code = cudaSuccess;
  // It may wait for all that the GPU does.
  first_launches_.RunAlone([&](bool) {
    code = cudaHostAlloc(&memory, std::max<size_t>(bytes, 1),
                         cudaHostAllocDefault);
  });
  if (code == cudaSuccess) return memory;
  cudaGetLastError();  // it is told here, and not once more by a later call
  if (code != cudaErrorMemoryAllocation) {
    return troupe::ToStatus(code, "cudaHostAlloc");
  }
  return absl::ResourceExhaustedError(
      absl::StrCat("no page-locked host memory for ", bytes,
                   " bytes: lower --host-memory below what the machine has"));
}

void CudaDevice::FreeHost(void* memory) {
  cudaSetDevice(ordinal_);
  Check(cudaFreeHost(memory), "cudaFreeHost");
}

void CudaDevice::CopyWithin(void* to, const void* from, size_t bytes) {
  const ThreadStream* mine = bytes == 0 ? nullptr : Mine();
  if (mine == nullptr) return;
  Check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, mine->get()),
        "cudaMemcpyAsync");
}

void CudaDevice::CopyFromHost(void* to, const void* from, size_t bytes) {
  ThreadStream* mine = bytes == 0 ? nullptr : Mine();
  if (mine != nullptr) Check(mine->CopyFromHost(to, from, bytes));
}

void CudaDevice::CopyToHost(void* to, const void* from, size_t bytes) {
  ThreadStream* mine = bytes == 0 ? nullptr : Mine();
  if (mine != nullptr) Check(mine->CopyToHost(to, from, bytes));
}

void CudaDevice::Zero(void* to, size_t bytes) {
  const ThreadStream* mine = bytes == 0 ? nullptr : Mine();
  if (mine == nullptr) return;
  Check(cudaMemsetAsync(to, 0, bytes, mine->get()), "cudaMemsetAsync");
}

absl::Status CudaDevice::Synchronize() {
  const cudaStream_t mine = made_stream();
  if (mine != nullptr) {
    Check(cudaStreamSynchronize(mine), "cudaStreamSynchronize");
  }
  return status();
}

absl::Status CudaDevice::StartAfresh() {
  cudaSetDevice(ordinal_);
  cudaDeviceSynchronize();
  {
    absl::MutexLock lock(&mutex_);
    streams_.clear();
  }
  cudaMemPoolTrimTo(scratch_pool_, 0);
  cudaGetLastError();  // what the work before left here for a later call
  // An error that stays is the answer to any work; this also forgets what
  // kernels had to say.
  cudaError_t code = cudaMemset(fault_, 0, sizeof(Fault));
  if (code == cudaSuccess) code = cudaDeviceSynchronize();
  absl::MutexLock lock(&mutex_);
  if (code == cudaSuccess) {
    error_ = absl::OkStatus();
    failed_.store(false, std::memory_order_release);
    return absl::OkStatus();
  }
  const absl::Status stays = troupe::ToStatus(code, "cudaMemset");
  error_ = absl::Status(
      stays.code(),
      absl::StrCat(Describe(), ": ",
                   error_.ok() ? stays.message() : error_.message(),
                   "; this process cannot use the GPU any more (",
                   cudaGetErrorName(code),
                   "): start it again, and where that does not help look for "
                   "Xid in the kernel's log (dmesg)"));
  failed_.store(true, std::memory_order_release);
  return error_;
}

void CudaDevice::RefuseSharedBytes(const void* kernel, size_t bytes) {
  cudaGetLastError();  // it is told here, and not once more by a later call
  const char* name = nullptr;
  cudaFuncGetName(&name, kernel);
  Check(absl::UnimplementedError(absl::StrCat(
      Describe(), ": a block of ", name == nullptr ? "a kernel" : name,
      " would take ", bytes, " bytes of shared memory and can have ",
      shared_bytes_max(), " here; use another GPU, or workers on CPUs")));
}

std::unique_ptr<Fence> CudaDevice::Record(FenceUse use) {
  return CudaFence::Record(*this, use);
}

void CudaDevice::WaitFor(const Fence& fence) {
  const cudaEvent_t event = static_cast<const CudaFence&>(fence).event();
  const ThreadStream* mine = event == nullptr ? nullptr : Mine();
  if (mine == nullptr) return;
  Check(cudaStreamWaitEvent(mine->get(), event), "cudaStreamWaitEvent");
}

absl::Status CudaDevice::status() {
  if (!failed()) Check(ToStatus(*fault_));
  absl::MutexLock lock(&mutex_);
  return error_;
}

}  // namespace troupe
