#include "tests/worker/collective/nccl/stand_in_gpus.h"

#include <cstdint>
#include <cstdlib>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "worker/collective/nccl/comm.h"

struct ncclComm {
  int device = 0;
};

namespace troupe {
namespace {

struct Gpus {
  absl::Mutex mutex;
  std::set<int> contexts ABSL_GUARDED_BY(mutex);
  bool events_have_run ABSL_GUARDED_BY(mutex) = true;
  int event_queries ABSL_GUARDED_BY(mutex) = 0;
  int nccl_aborts ABSL_GUARDED_BY(mutex) = 0;
};

Gpus& TheGpus() {
  static Gpus* const gpus = new Gpus;
  return *gpus;
}

thread_local int current_device = 0;

// A call that needs a context.
cudaError_t Touch() {
  absl::MutexLock lock(&TheGpus().mutex);
  TheGpus().contexts.insert(current_device);
  return cudaSuccess;
}

template <typename Handle>
cudaError_t Make(Handle* handle) {
  *handle = reinterpret_cast<Handle>(std::malloc(1));
  return Touch();
}

template <typename Handle>
cudaError_t Free(Handle handle) {
  std::free(reinterpret_cast<void*>(handle));
  return Touch();
}

cudaError_t Memory(void** memory, size_t bytes) {
  *memory = std::calloc(1, bytes);
  return Touch();
}

void AwaitCount(const int& counter, int count) {
  absl::Mutex& mutex = TheGpus().mutex;
  absl::MutexLock lock(&mutex);
  const auto enough = [&] { return counter >= count; };
  mutex.Await(absl::Condition(&enough));
}

}  // namespace

void ResetStandInGpus() {
  Gpus& gpus = TheGpus();
  absl::MutexLock lock(&gpus.mutex);
  gpus.contexts.clear();
  gpus.events_have_run = true;
  gpus.event_queries = gpus.nccl_aborts = 0;
}

std::set<int> StandInContexts() {
  absl::MutexLock lock(&TheGpus().mutex);
  return TheGpus().contexts;
}

void SetEventsHaveRun(bool have_run) {
  absl::MutexLock lock(&TheGpus().mutex);
  TheGpus().events_have_run = have_run;
}

void AwaitEventQueries(int count) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  AwaitCount(TheGpus().event_queries, count);
}

void AwaitNcclAborts(int count) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  AwaitCount(TheGpus().nccl_aborts, count);
}

extern "C" {

cudaError_t __wrap_cudaSetDevice(int device) {
  current_device = device;
  return Touch();
}
cudaError_t __wrap_cudaInitDevice(int device, unsigned, unsigned) {
  absl::MutexLock lock(&TheGpus().mutex);
  TheGpus().contexts.insert(device);
  return cudaSuccess;
}
cudaError_t __wrap_cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = {};
  properties->major = 9;
  properties->multiProcessorCount = 132;
  properties->sharedMemPerBlockOptin = 227 << 10;
  return cudaSuccess;
}
// That the last call failed is no work.
cudaError_t __wrap_cudaGetLastError() { return cudaSuccess; }

cudaError_t __wrap_cudaMemPoolCreate(cudaMemPool_t* pool,
                                     const cudaMemPoolProps*) {
  return Make(pool);
}
cudaError_t __wrap_cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr,
                                           void*) {
  return Touch();
}
cudaError_t __wrap_cudaMemPoolTrimTo(cudaMemPool_t, size_t) { return Touch(); }
cudaError_t __wrap_cudaMemPoolDestroy(cudaMemPool_t pool) { return Free(pool); }

cudaError_t __wrap_cudaMalloc(void** memory, size_t bytes) {
  return Memory(memory, bytes);
}
cudaError_t __wrap_cudaHostAlloc(void** memory, size_t bytes, unsigned) {
  return Memory(memory, bytes);
}
cudaError_t __wrap_cudaMallocHost(void** memory, size_t bytes) {
  return Memory(memory, bytes);
}
cudaError_t __wrap_cudaFree(void* memory) { return Free(memory); }
cudaError_t __wrap_cudaFreeHost(void* memory) { return Free(memory); }
cudaError_t __wrap_cudaMemset(void*, int, size_t) { return Touch(); }
cudaError_t __wrap_cudaMemsetAsync(void*, int, size_t, cudaStream_t) {
  return Touch();
}
cudaError_t __wrap_cudaDeviceSynchronize() { return Touch(); }

cudaError_t __wrap_cudaDeviceGetStreamPriorityRange(int* last, int* first) {
  *last = 0;
  *first = -5;
  return Touch();
}
cudaError_t __wrap_cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned,
                                                int) {
  return Make(stream);
}
cudaError_t __wrap_cudaStreamSynchronize(cudaStream_t) { return Touch(); }
cudaError_t __wrap_cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) {
  return Touch();
}
cudaError_t __wrap_cudaStreamDestroy(cudaStream_t stream) {
  return Free(stream);
}

cudaError_t __wrap_cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  return Make(event);
}
cudaError_t __wrap_cudaEventDestroy(cudaEvent_t event) { return Free(event); }
cudaError_t __wrap_cudaEventRecord(cudaEvent_t, cudaStream_t) {
  return Touch();
}
cudaError_t __wrap_cudaEventSynchronize(cudaEvent_t) { return Touch(); }
cudaError_t __wrap_cudaEventElapsedTime(float* milliseconds, cudaEvent_t,
                                        cudaEvent_t) {
  *milliseconds = 1;
  return Touch();
}
cudaError_t __wrap_cudaEventQuery(cudaEvent_t) {
  Touch();
  absl::MutexLock lock(&TheGpus().mutex);
  ++TheGpus().event_queries;
  return TheGpus().events_have_run ? cudaSuccess : cudaErrorNotReady;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int, ncclUniqueId, int,
                                    ncclConfig_t*) {
  *comm = new ncclComm{.device = current_device};
  return ncclSuccess;
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t, ncclResult_t* state) {
  *state = ncclSuccess;
  return ncclSuccess;
}
ncclResult_t ncclAllReduce(const void*, void*, size_t, ncclDataType_t,
                           ncclRedOp_t, ncclComm_t, cudaStream_t) {
  return ncclSuccess;
}
ncclResult_t ncclCommFinalize(ncclComm_t) { return ncclSuccess; }
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  const int before = current_device;
  __wrap_cudaSetDevice(comm->device);
  delete comm;
  __wrap_cudaSetDevice(before);
  return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  ncclCommDestroy(comm);
  absl::MutexLock lock(&TheGpus().mutex);
  ++TheGpus().nccl_aborts;
  return ncclSuccess;
}

}  // extern "C"

}  // namespace troupe
