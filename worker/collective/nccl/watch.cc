#include "worker/collective/nccl/watch.h"

#include "absl/time/clock.h"
#include "worker/actor/thread_name.h"

namespace troupe {
namespace {

constexpr absl::Duration kLook = absl::Milliseconds(20);

}  // namespace

NcclWatch::NcclWatch(NcclComm& comm) : comm_(comm) {
  thread_ = std::thread([this] { Loop(); });
}

NcclWatch::~NcclWatch() {
  {
    absl::MutexLock lock(&mutex_);
    over_ = true;
  }
  thread_.join();
}

void NcclWatch::Begin(absl::Time deadline) {
  absl::MutexLock lock(&mutex_);
  deadline_ = deadline;
  under_way_ = true;
}

absl::Status NcclWatch::End() {
  absl::MutexLock lock(&mutex_);
  under_way_ = false;
  return failure_;
}

void NcclWatch::Loop() {
  NameThisThread("nccl watch");
  absl::MutexLock lock(&mutex_);
  while (true) {
    const auto wanted = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
      return under_way_ || over_;
    };
    mutex_.Await(absl::Condition(&wanted));
    if (over_) return;
    const auto ended = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
      return !under_way_ || over_;
    };
    if (mutex_.AwaitWithTimeout(absl::Condition(&ended), kLook)) continue;
    if (!failure_.ok()) continue;
    failure_ = comm_.AsyncError();
    if (failure_.ok() && absl::Now() >= deadline_) {
      failure_ = absl::DeadlineExceededError("NCCL did not end in time");
    }
    if (!failure_.ok()) comm_.Abort();
  }
}

}  // namespace troupe
