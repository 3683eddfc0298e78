// What thread sanitizer cannot see: how threads wait for each other inside
// libraries that were not built with it. Each function here stands before the
// library's own of the same name, calls it, and tells the sanitizer what that
// means. Part of every test with --config=tsan, and of nothing else.
#include <dlfcn.h>
#include <sanitizer/tsan_interface.h>

#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"

extern "C" {
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
}

namespace {

// The library's function of that name, as the linker knows it.
template <typename F>
F* Next(const char* name) {
  return reinterpret_cast<F*>(dlsym(RTLD_NEXT, name));
}

// Around a call that lets go of a mutex or takes it. A thread that lets go
// asks, inside absl, the conditions of those that wait: it still holds the
// mutex then, though it has said already that it does not.
class Told {
 public:
  explicit Told(void* mutex) : mutex_(mutex) {
    AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
  }
  ~Told() { AnnotateIgnoreReadsEnd(__FILE__, __LINE__); }

 protected:
  void* const mutex_;
};

struct Gives : Told {
  explicit Gives(void* mutex) : Told(mutex) { __tsan_release(mutex); }
};

struct Takes : Told {
  using Told::Told;
  ~Takes() { __tsan_acquire(mutex_); }
};

struct Waits : Takes {
  explicit Waits(void* mutex) : Takes(mutex) { __tsan_release(mutex); }
};

}  // namespace

namespace absl {
ABSL_NAMESPACE_BEGIN

void Mutex::Lock() {
  static auto* const next = Next<void(Mutex*)>("_ZN4absl7debian35Mutex4LockEv");
  const Takes told(this);
  next(this);
}

void Mutex::ReaderLock() {
  static auto* const next =
      Next<void(Mutex*)>("_ZN4absl7debian35Mutex10ReaderLockEv");
  const Takes told(this);
  next(this);
}

void Mutex::Unlock() {
  static auto* const next =
      Next<void(Mutex*)>("_ZN4absl7debian35Mutex6UnlockEv");
  const Gives told(this);
  next(this);
}

void Mutex::ReaderUnlock() {
  static auto* const next =
      Next<void(Mutex*)>("_ZN4absl7debian35Mutex12ReaderUnlockEv");
  const Gives told(this);
  next(this);
}

bool Mutex::TryLock() {
  static auto* const next =
      Next<bool(Mutex*)>("_ZN4absl7debian35Mutex7TryLockEv");
  const Takes told(this);
  return next(this);
}

void Mutex::LockWhen(const Condition& condition) {
  static auto* const next = Next<void(Mutex*, const Condition&)>(
      "_ZN4absl7debian35Mutex8LockWhenERKNS0_9ConditionE");
  const Takes told(this);
  next(this, condition);
}

bool Mutex::LockWhenWithTimeout(const Condition& condition, Duration timeout) {
  static auto* const next = Next<bool(Mutex*, const Condition&, Duration)>(
      "_ZN4absl7debian35Mutex19LockWhenWithTimeoutERKNS0_9ConditionENS0_"
      "8DurationE");
  const Takes told(this);
  return next(this, condition, timeout);
}

bool Mutex::LockWhenWithDeadline(const Condition& condition, Time deadline) {
  static auto* const next = Next<bool(Mutex*, const Condition&, Time)>(
      "_ZN4absl7debian35Mutex20LockWhenWithDeadlineERKNS0_9ConditionENS0_"
      "4TimeE");
  const Takes told(this);
  return next(this, condition, deadline);
}

void Mutex::Await(const Condition& condition) {
  static auto* const next = Next<void(Mutex*, const Condition&)>(
      "_ZN4absl7debian35Mutex5AwaitERKNS0_9ConditionE");
  const Waits told(this);
  next(this, condition);
}

bool Mutex::AwaitWithTimeout(const Condition& condition, Duration timeout) {
  static auto* const next = Next<bool(Mutex*, const Condition&, Duration)>(
      "_ZN4absl7debian35Mutex16AwaitWithTimeoutERKNS0_9ConditionENS0_"
      "8DurationE");
  const Waits told(this);
  return next(this, condition, timeout);
}

bool Mutex::AwaitWithDeadline(const Condition& condition, Time deadline) {
  static auto* const next = Next<bool(Mutex*, const Condition&, Time)>(
      "_ZN4absl7debian35Mutex17AwaitWithDeadlineERKNS0_9ConditionENS0_4TimeE");
  const Waits told(this);
  return next(this, condition, deadline);
}

void CondVar::Wait(Mutex* mutex) {
  static auto* const next = Next<void(CondVar*, Mutex*)>(
      "_ZN4absl7debian37CondVar4WaitEPNS0_5MutexE");
  const Waits told(mutex);
  next(this, mutex);
}

bool CondVar::WaitWithTimeout(Mutex* mutex, Duration timeout) {
  static auto* const next = Next<bool(CondVar*, Mutex*, Duration)>(
      "_ZN4absl7debian37CondVar15WaitWithTimeoutEPNS0_5MutexENS0_8DurationE");
  const Waits told(mutex);
  return next(this, mutex, timeout);
}

bool CondVar::WaitWithDeadline(Mutex* mutex, Time deadline) {
  static auto* const next = Next<bool(CondVar*, Mutex*, Time)>(
      "_ZN4absl7debian37CondVar16WaitWithDeadlineEPNS0_5MutexENS0_4TimeE");
  const Waits told(mutex);
  return next(this, mutex, deadline);
}

bool BlockingCounter::DecrementCount() {
  static auto* const next = Next<bool(BlockingCounter*)>(
      "_ZN4absl7debian315BlockingCounter14DecrementCountEv");
  const Gives told(this);
  return next(this);
}

void BlockingCounter::Wait() {
  static auto* const next =
      Next<void(BlockingCounter*)>("_ZN4absl7debian315BlockingCounter4WaitEv");
  const Takes told(this);
  next(this);
}

// A caller of HasBeenNotified, which is inline, loads the flag where the
// sanitizer sees it; so it is the flag that gives.
void Notification::Notify() {
  static auto* const next =
      Next<void(Notification*)>("_ZN4absl7debian312Notification6NotifyEv");
  const Gives told(&notified_yet_);
  next(this);
}

void Notification::WaitForNotification() const {
  static auto* const next = Next<void(const Notification*)>(
      "_ZNK4absl7debian312Notification19WaitForNotificationEv");
  next(this);
  static_cast<void>(HasBeenNotified());
}

bool Notification::WaitForNotificationWithTimeout(Duration timeout) const {
  static auto* const next = Next<bool(const Notification*, Duration)>(
      "_ZNK4absl7debian312Notification30WaitForNotificationWithTimeoutENS0_"
      "8DurationE");
  return next(this, timeout) && HasBeenNotified();
}

bool Notification::WaitForNotificationWithDeadline(Time deadline) const {
  static auto* const next = Next<bool(const Notification*, Time)>(
      "_ZNK4absl7debian312Notification31WaitForNotificationWithDeadlineENS0_"
      "4TimeE");
  return next(this, deadline) && HasBeenNotified();
}

ABSL_NAMESPACE_END
}  // namespace absl

namespace {

struct Region {
  void (*body)(void*);
  void* data;
};

void RunRegion(void* argument) {
  const auto* region = static_cast<const Region*>(argument);
  __tsan_acquire(argument);
  region->body(region->data);
  __tsan_release(argument);
}

}  // namespace

// OpenMP's threads begin after what was before the call, and end before it
// does.
extern "C" void GOMP_parallel(void (*body)(void*), void* data, unsigned threads,
                              unsigned flags) {
  static auto* const next =
      Next<void(void (*)(void*), void*, unsigned, unsigned)>("GOMP_parallel");
  Region region = {body, data};
  __tsan_release(&region);
  next(RunRegion, &region, threads, flags);
  __tsan_acquire(&region);
}

// A ring's memory is mapped and unmapped by system calls of liburing's own, so
// that a ring at an address where another thread's was seems to share it.
// What was done with rings that ended comes before a new one.
struct io_uring;
struct io_uring_params;

namespace {

char rings;

}  // namespace

extern "C" int io_uring_queue_init_params(unsigned entries, io_uring* ring,
                                          io_uring_params* params) {
  static auto* const next = Next<int(unsigned, io_uring*, io_uring_params*)>(
      "io_uring_queue_init_params");
  const Takes told(&rings);
  return next(entries, ring, params);
}

extern "C" void io_uring_queue_exit(io_uring* ring) {
  static auto* const next = Next<void(io_uring*)>("io_uring_queue_exit");
  const Gives told(&rings);
  next(ring);
}
