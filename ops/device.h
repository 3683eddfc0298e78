// A Device is where tensors lie and ops run. Every op takes one by reference:
//
//   std::unique_ptr<Device> device = NewCpuDevice({.threads = 2});
//   ASSIGN_OR_RETURN(void* memory, device->Allocate(bytes));
//   MatMul(*device, {.a = x, .b = weight, .c = y});
//   RETURN_IF_ERROR(device->Synchronize());
//
// Ops and copies are *enqueued*: they run in the order of the calls and have
// surely finished only after Synchronize. A CPU device has finished each when
// the call returns. Tensors of one op lie on its device, but where the op says
// otherwise, and stay alive and unchanged until it has run.
//
// Each thread enqueues into a queue of its own. Where what one thread enqueues
// needs what another one did, a fence (fence.h) orders the two queues without
// either thread waiting.
//
// Same inputs, same number of threads: bitwise the same results.
//
// Thread rule: any thread may call ops on any device at any time, also several
// on the same one; what one thread calls keeps its order. Ops share no state
// that a caller can see, and devices none at all, so that N ranks may be N
// threads of one process.
#ifndef TROUPE_OPS_DEVICE_H_
#define TROUPE_OPS_DEVICE_H_

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ops/fence.h"

namespace troupe {

struct KernelTable;

enum class DeviceKind { kCpu, kCuda };

// What a thread will enqueue, each with what is before it: waits for fences and
// kernels; copies of host memory; products, which need memory of their own.
enum class QueueWork { kFences, kCopies, kProducts };

class Device {
 public:
  // What each allocation is aligned to, and what flat buffers should align
  // their tensors to.
  static constexpr size_t kAlignment = 64;

  Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  virtual ~Device() = default;

  virtual DeviceKind kind() const = 0;
  virtual std::string Describe() const = 0;  // "cpu: 2 threads, avx512"
  virtual int threads() const = 0;           // 1 on a GPU

  // Whether what is enqueued may run after its call has returned.
  virtual bool asynchronous() const { return false; }
  // Whether its memory is the host's, which any thread may read and write; else
  // only ops and copies reach it.
  virtual bool has_host_memory() const { return kind() == DeviceKind::kCpu; }

  // The kernels behind the functions of ops/<name>.h.
  virtual const KernelTable& kernels() const = 0;

  // Uninitialised memory of the device. ResourceExhausted when there is none
  // left. Budgets are not kept here: they belong to the arenas above.
  virtual absl::StatusOr<void*> Allocate(size_t bytes) = 0;
  virtual void Free(void* memory) = 0;
  // Host memory that copies from and to this device reach fastest: page-locked
  // for a GPU.
  virtual absl::StatusOr<void*> AllocateHost(size_t bytes) {
    return Allocate(bytes);
  }
  virtual void FreeHost(void* memory) { Free(memory); }

  // Enqueued. Host memory must stay as it is until Synchronize.
  virtual void CopyWithin(void* to, const void* from, size_t bytes) = 0;
  virtual void CopyFromHost(void* to, const void* from, size_t bytes) = 0;
  virtual void CopyToHost(void* to, const void* from, size_t bytes) = 0;
  virtual void Zero(void* to, size_t bytes) = 0;

  // Where queues of several threads have work, that of this one's, from now on,
  // comes before that of a lower priority, as far as the device can tell so
  // many apart; 0 is usual. REQUIRES that nothing of this thread is under way.
  virtual void SetQueuePriority(int priority) {}

  // Takes now what this thread needs of the device to enqueue such work, which
  // would else be taken when it first does: that may wait for all that the
  // device has under way, and so for peers. After SetQueuePriority.
  virtual void PrepareQueue(QueueWork work) {}

  // Takes now, for the same reason, this much memory for what kernels need
  // while they run, so that all threads' together take no more for it as long
  // as that is enough. Enqueued; until StartAfresh.
  virtual void PrepareScratch(size_t bytes) {}

  // Waits for all that this thread enqueued, until it has run or never will.
  // The error of the device, which no later call mends but StartAfresh: nothing
  // is enqueued any more once it has failed, what was there before runs to its
  // end, and all that wait for that hear the first error, though it be
  // another's.
  virtual absl::Status Synchronize() = 0;

  // For the moment between two jobs. Gives back what threads took of the device
  // to call it, those that have ended among them, and forgets an error that
  // only the work before suffered from: memory that ran out, a shape that no
  // kernel takes. REQUIRES that no other thread calls it meanwhile and that no
  // fence is left; memory stays. An error: the device is of no use to this
  // process any more; it says why, and what to do.
  virtual absl::Status StartAfresh() { return absl::OkStatus(); }

  // Marks the place that this thread's queue has reached. Null where the device
  // is not asynchronous: all has run.
  virtual std::unique_ptr<Fence> Record(FenceUse use) { return nullptr; }
  // What this thread enqueues from now on runs after all before the fence,
  // which is of this device and may be destroyed as soon as this returns. Does
  // not wait.
  virtual void WaitFor(const Fence& fence) {}
};

}  // namespace troupe

#endif  // TROUPE_OPS_DEVICE_H_
