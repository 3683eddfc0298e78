#include "worker/collective/watch.h"

#include <algorithm>
#include <utility>

#include "proto/base/check.h"
#include "proto/base/steady_time.h"
#include "worker/actor/thread_name.h"

namespace troupe {

Watch::Watch() : thread_([this] { Loop(); }) {}

Watch::~Watch() {
  {
    absl::MutexLock lock(&mutex_);
    over_ = true;
    hurry_.Say();
  }
  thread_.join();
  absl::MutexLock lock(&looking_);
  CHECK(watched_.empty()) << watched_.size() << " communicators outlive it";
}

void Watch::Add(Watched& watched) {
  absl::MutexLock lock(&looking_);
  watched_.push_back(&watched);
}

void Watch::Remove(Watched& watched) {
  absl::MutexLock lock(&looking_);
  watched_.erase(std::remove(watched_.begin(), watched_.end(), &watched),
                 watched_.end());
}

void Watch::Expect(absl::Time deadline) {
  absl::MutexLock lock(&mutex_);
  ++expected_;
  soonest_ = std::min(soonest_, deadline);
  if (soonest_ < next_) hurry_.Say();
}

void Watch::EndAll(Watched::Cause cause) {
  absl::MutexLock lock(&mutex_);
  if (cause_) return;
  cause_ = std::move(cause);
  ++expected_;
  soonest_ = absl::InfinitePast();
  hurry_.Say();
}

void Watch::EndEach(const Watched::Cause& cause) {
  absl::MutexLock lock(&looking_);
  for (Watched* const watched : watched_) watched->EndToo(cause);
}

absl::Time Watch::LookAtAll() {
  absl::MutexLock lock(&looking_);
  absl::Time soonest = absl::InfiniteFuture();
  for (Watched* const watched : watched_) {
    soonest = std::min(soonest, watched->Look());
  }
  return soonest;
}

void Watch::Loop() {
  NameThisThread("comm watch");
  bool idle = true;
  int64_t seen = 0;
  while (true) {
    {
      absl::MutexLock lock(&mutex_);
      if (idle && expected_ == seen) {
        const auto work = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
          return over_ || expected_ != seen;
        };
        mutex_.Await(absl::Condition(&work));
      }
      seen = expected_;
      next_ = std::min(SteadyNow() + kEvery, soonest_);
      const auto hurry = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
        return over_ || soonest_ < next_;
      };
      // Woken, it waits again until the deadline that has come up.
      while (hurry_.Await(mutex_, next_ - SteadyNow(), hurry)) {
        if (over_) return;
        next_ = soonest_;
      }
      // What begins while all are looked at says so once more.
      soonest_ = absl::InfiniteFuture();
    }
    // First what may hold up those that would be looked at.
    Watched::Cause before;
    {
      absl::MutexLock lock(&mutex_);
      before = cause_;
    }
    if (before) EndEach(before);
    const absl::Time soonest = LookAtAll();
    idle = soonest == absl::InfiniteFuture();
    Watched::Cause cause;
    {
      absl::MutexLock lock(&mutex_);
      soonest_ = std::min(soonest_, soonest);
      cause = cause_;
    }
    if (cause) EndEach(cause);
  }
}

}  // namespace troupe
