// A CPU device that treats its callers as a GPU would, so that the worker can
// be tested for a GPU where there is none:
//
// * Its memory is not the host's. The addresses that it gives out lie in pages
//   that nobody may touch: reading an operand on the host is a segmentation
//   fault, there and then. Only its kernels and copies know where the bytes
//   are, and they CHECK that every tensor is of this device.
// * It is asynchronous. Each calling thread has a queue, which a thread of its
//   own works off; code that forgets a fence or a Synchronize reads old bytes.
//   New memory is full of NaNs.
//
// * It can fail, as a GPU does: then nothing more runs, and all that wait for
// it
//   hear why.
//
// The arithmetic is that of NewCpuDevice, to the bit.
#ifndef TROUPE_TESTS_OPS_SPLIT_MEMORY_DEVICE_H_
#define TROUPE_TESTS_OPS_SPLIT_MEMORY_DEVICE_H_

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "ops/cpu/device.h"
#include "ops/device.h"
#include "worker/actor/actor.h"

namespace troupe {

class SplitMemoryDevice : public Device {
 public:
  // Calls that a thread's queue has room for; one more waits.
  static constexpr int kQueuedMax = 1024;

  explicit SplitMemoryDevice(const CpuDeviceOptions& options);
  // REQUIRES that all memory has been given back.
  ~SplitMemoryDevice() override;

  // For the kernels: the device that computes, and where the bytes are. CHECKs
  // that the address is of this device's memory; null stays null.
  Device& cpu() { return *cpu_; }
  void* Bytes(const void* address) const;
  // Runs `work` when all that the calling thread enqueued before has run,
  // unless the device has failed by then.
  void Enqueue(std::function<void()> work);

  // From now on, until it starts afresh; not even then where the error stays.
  void Fail(const absl::Status& error, bool stays = false);
  absl::Status error() const;
  // Returns when all that is in the queues of all threads now has run, as a
  // driver's calls may that take something of the device, or give it back.
  void AwaitAllQueues();
  // Of threads that called since it started afresh.
  int queues() const;
  // For what threads were prepared, ever.
  std::multiset<QueueWork> prepared() const;
  size_t scratch_bytes() const { return scratch_bytes_; }
  // That threads have set, ascending.
  std::multiset<int> priorities() const;

  DeviceKind kind() const override { return cpu_->kind(); }
  std::string Describe() const override { return cpu_->Describe(); }
  int threads() const override { return cpu_->threads(); }
  bool asynchronous() const override { return true; }
  bool has_host_memory() const override { return false; }
  const KernelTable& kernels() const override;
  absl::StatusOr<void*> Allocate(size_t bytes) override;
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
  void PrepareScratch(size_t bytes) override { scratch_bytes_ += bytes; }

 private:
  using Queue = Actor<std::function<void()>>;

  // Also where the device has failed.
  void EnqueueAlways(std::function<void()> work);
  bool IsOurs(const void* address) const;
  void* HostBytes(const void* address) const;

  const std::unique_ptr<Device> cpu_;
  char* addresses_ = nullptr;  // kAddressBytes that nobody may touch
  char* bytes_ = nullptr;      // as many, where they really are
  mutable absl::Mutex mutex_;
  absl::Status error_ ABSL_GUARDED_BY(mutex_);
  bool error_stays_ ABSL_GUARDED_BY(mutex_) = false;
  size_t next_ ABSL_GUARDED_BY(mutex_) = 0;  // offset; none is used twice
  std::map<void*, size_t> blocks_ ABSL_GUARDED_BY(mutex_);
  std::map<std::thread::id, std::unique_ptr<Queue>> queues_
      ABSL_GUARDED_BY(mutex_);
  std::multiset<int> priorities_ ABSL_GUARDED_BY(mutex_);
  std::multiset<QueueWork> prepared_ ABSL_GUARDED_BY(mutex_);
  std::atomic<size_t> scratch_bytes_{0};
};

}  // namespace troupe

#endif  // TROUPE_TESTS_OPS_SPLIT_MEMORY_DEVICE_H_
