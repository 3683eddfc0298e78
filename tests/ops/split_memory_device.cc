#include "tests/ops/split_memory_device.h"

#include <sys/mman.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "proto/base/check.h"
#include "proto/base/clock.h"
#include "tests/ops/split_memory_kernels.h"

namespace troupe {
namespace {

constexpr size_t kAddressBytes = size_t{16} << 30;
constexpr size_t kPageBytes = 4096;
constexpr char kUninitialised = '\xff';  // NaN, in f32, bf16 and f64

char* Reserve(int protection) {
  void* memory = mmap(nullptr, kAddressBytes, protection,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  CHECK(memory != MAP_FAILED);
  return static_cast<char*>(memory);
}

struct Place {
  absl::Notification reached;
  int64_t reached_ns = 0;
};

class SplitMemoryFence final : public Fence {
 public:
  explicit SplitMemoryFence(const SplitMemoryDevice& device)
      : device_(device), place_(std::make_shared<Place>()) {}

  const std::shared_ptr<Place>& place() const { return place_; }
  absl::Status Await() override {
    place_->reached.WaitForNotification();
    return device_.error();
  }
  bool HasRun() const override { return place_->reached.HasBeenNotified(); }
  int64_t NanosSince(const Fence& earlier) const override {
    const Place& from = *static_cast<const SplitMemoryFence&>(earlier).place_;
    CHECK(place_->reached.HasBeenNotified() && from.reached.HasBeenNotified());
    return place_->reached_ns - from.reached_ns;
  }

 private:
  const SplitMemoryDevice& device_;
  const std::shared_ptr<Place> place_;
};

}  // namespace

SplitMemoryDevice::SplitMemoryDevice(const CpuDeviceOptions& options)
    : cpu_(NewCpuDevice(options)),
      addresses_(Reserve(PROT_NONE)),
      bytes_(Reserve(PROT_READ | PROT_WRITE)) {}

SplitMemoryDevice::~SplitMemoryDevice() {
  std::map<std::thread::id, std::unique_ptr<Queue>> queues;
  {
    absl::MutexLock lock(&mutex_);
    queues.swap(queues_);
  }
  queues.clear();  // works off what is queued
  absl::MutexLock lock(&mutex_);
  CHECK(blocks_.empty()) << blocks_.size() << " blocks were not given back";
  munmap(addresses_, kAddressBytes);
  munmap(bytes_, kAddressBytes);
}

const KernelTable& SplitMemoryDevice::kernels() const {
  return kSplitMemoryKernels;
}

bool SplitMemoryDevice::IsOurs(const void* address) const {
  const char* at = static_cast<const char*>(address);
  return at >= addresses_ && at < addresses_ + kAddressBytes;
}

void* SplitMemoryDevice::Bytes(const void* address) const {
  if (address == nullptr) return nullptr;
  CHECK(IsOurs(address)) << "host memory where the device's is wanted";
  return bytes_ + (static_cast<const char*>(address) - addresses_);
}

void* SplitMemoryDevice::HostBytes(const void* address) const {
  CHECK(!IsOurs(address)) << "the device's memory where the host's is wanted";
  return const_cast<void*>(address);
}

void SplitMemoryDevice::Enqueue(std::function<void()> work) {
  EnqueueAlways([this, work = std::move(work)] {
    if (error().ok()) work();
  });
}

void SplitMemoryDevice::Fail(const absl::Status& error, bool stays) {
  absl::MutexLock lock(&mutex_);
  error_ = error;
  error_stays_ = stays;
}

absl::Status SplitMemoryDevice::error() const {
  absl::MutexLock lock(&mutex_);
  return error_;
}

void SplitMemoryDevice::AwaitAllQueues() {
  std::vector<std::shared_ptr<Place>> ends;
  {
    absl::MutexLock lock(&mutex_);
    for (const auto& [thread, queue] : queues_) {
      ends.push_back(std::make_shared<Place>());
      queue->Send([end = ends.back()] { end->reached.Notify(); });
    }
  }
  for (const auto& end : ends) end->reached.WaitForNotification();
}

int SplitMemoryDevice::queues() const {
  absl::MutexLock lock(&mutex_);
  return static_cast<int>(queues_.size());
}

absl::Status SplitMemoryDevice::StartAfresh() {
  std::map<std::thread::id, std::unique_ptr<Queue>> queues;
  {
    absl::MutexLock lock(&mutex_);
    queues.swap(queues_);
  }
  queues.clear();  // works off what is queued
  absl::MutexLock lock(&mutex_);
  if (!error_stays_) error_ = absl::OkStatus();
  return error_;
}

void SplitMemoryDevice::EnqueueAlways(std::function<void()> work) {
  Queue* queue = nullptr;
  {
    absl::MutexLock lock(&mutex_);
    std::unique_ptr<Queue>& mine = queues_[std::this_thread::get_id()];
    if (mine == nullptr) {
      mine = std::make_unique<Queue>(
          ActorOptions{.name = "split queue", .capacity = kQueuedMax},
          [](std::function<void()> next) { next(); });
    }
    queue = mine.get();
  }
  queue->Send(std::move(work));
}

absl::StatusOr<void*> SplitMemoryDevice::Allocate(size_t bytes) {
  const size_t pages = (bytes + kPageBytes - 1) / kPageBytes;
  absl::MutexLock lock(&mutex_);
  if (pages > (kAddressBytes - next_) / kPageBytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no addresses left for ", bytes, " bytes"));
  }
  void* memory = addresses_ + next_;
  std::memset(bytes_ + next_, kUninitialised, bytes);
  next_ += pages * kPageBytes;
  blocks_[memory] = pages * kPageBytes;
  return memory;
}

void SplitMemoryDevice::Free(void* memory) {
  if (memory == nullptr) return;
  void* const bytes = Bytes(memory);
  absl::MutexLock lock(&mutex_);
  const auto found = blocks_.find(memory);
  CHECK(found != blocks_.end()) << "freed twice, or never allocated";
  CHECK_EQ(madvise(bytes, found->second, MADV_DONTNEED), 0);
  blocks_.erase(found);
}

absl::StatusOr<void*> SplitMemoryDevice::AllocateHost(size_t bytes) {
  void* const memory = std::aligned_alloc(
      kPageBytes, (bytes + kPageBytes - 1) / kPageBytes * kPageBytes);
  CHECK(memory != nullptr);
  return memory;
}

void SplitMemoryDevice::FreeHost(void* memory) { std::free(HostBytes(memory)); }

void SplitMemoryDevice::CopyWithin(void* to, const void* from, size_t bytes) {
  Enqueue([this, to = Bytes(to), from = Bytes(from), bytes] {
    cpu_->CopyWithin(to, from, bytes);
  });
}

void SplitMemoryDevice::CopyFromHost(void* to, const void* from, size_t bytes) {
  Enqueue([this, to = Bytes(to), from = HostBytes(from), bytes] {
    cpu_->CopyFromHost(to, from, bytes);
  });
}

void SplitMemoryDevice::CopyToHost(void* to, const void* from, size_t bytes) {
  Enqueue([this, to = HostBytes(to), from = Bytes(from), bytes] {
    cpu_->CopyToHost(to, from, bytes);
  });
}

void SplitMemoryDevice::Zero(void* to, size_t bytes) {
  Enqueue([this, to = Bytes(to), bytes] { cpu_->Zero(to, bytes); });
}

absl::Status SplitMemoryDevice::Synchronize() {
  return Record(FenceUse::kOrder)->Await();
}

std::unique_ptr<Fence> SplitMemoryDevice::Record(FenceUse use) {
  auto fence = std::make_unique<SplitMemoryFence>(*this);
  EnqueueAlways([place = fence->place()] {
    place->reached_ns = RealClock().MonotonicNanos();
    place->reached.Notify();
  });
  return fence;
}

void SplitMemoryDevice::WaitFor(const Fence& fence) {
  EnqueueAlways([place = static_cast<const SplitMemoryFence&>(fence).place()] {
    place->reached.WaitForNotification();
  });
}

void SplitMemoryDevice::SetQueuePriority(int priority) {
  absl::MutexLock lock(&mutex_);
  priorities_.insert(priority);
}

void SplitMemoryDevice::PrepareQueue(QueueWork work) {
  Enqueue([] {});
  absl::MutexLock lock(&mutex_);
  prepared_.insert(work);
}

std::multiset<QueueWork> SplitMemoryDevice::prepared() const {
  absl::MutexLock lock(&mutex_);
  return prepared_;
}

std::multiset<int> SplitMemoryDevice::priorities() const {
  absl::MutexLock lock(&mutex_);
  return priorities_;
}

}  // namespace troupe
