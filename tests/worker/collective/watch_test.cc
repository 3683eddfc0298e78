#include "worker/collective/watch.h"

#include <atomic>
#include <thread>

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "proto/base/steady_time.h"

namespace troupe {
namespace {

// An operation with a deadline that ends when somebody ends it.
class Operation final : public Watched {
 public:
  explicit Operation(Watch& watch) : watch_(watch) { watch_.Add(*this); }
  ~Operation() { watch_.Remove(*this); }

  void Begin(absl::Time deadline) {
    {
      absl::MutexLock lock(&mutex_);
      deadline_ = deadline;
    }
    watch_.Expect(deadline);
  }
  // Returns once it has been looked at so often since it was made.
  void AwaitLooks(int looks) {
    absl::MutexLock lock(&mutex_);
    const auto looked = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
      return looks_ >= looks;
    };
    mutex_.Await(absl::Condition(&looked));
  }
  // Returns when the watch has ended it; says at what time.
  absl::Time AwaitEnd() {
    absl::MutexLock lock(&mutex_);
    const auto ended = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
      return ended_ != absl::InfiniteFuture();
    };
    mutex_.Await(absl::Condition(&ended));
    return ended_;
  }
  int looks() {
    absl::MutexLock lock(&mutex_);
    return looks_;
  }
  // Returns when it was told that another one has ended; says why.
  absl::Status AwaitCause() {
    absl::MutexLock lock(&mutex_);
    const auto told = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
      return !cause_.ok();
    };
    mutex_.Await(absl::Condition(&told));
    return cause_;
  }
  void EndToo(const Cause& cause) override {
    absl::MutexLock lock(&mutex_);
    cause_ = cause();
  }

  absl::Time Look() override {
    absl::MutexLock lock(&mutex_);
    ++looks_;
    if (SteadyNow() < deadline_) return deadline_;
    if (deadline_ != absl::InfiniteFuture()) ended_ = SteadyNow();
    deadline_ = absl::InfiniteFuture();
    return deadline_;
  }

 private:
  Watch& watch_;
  absl::Mutex mutex_;
  int looks_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Time deadline_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();
  absl::Time ended_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();
  absl::Status cause_ ABSL_GUARDED_BY(mutex_);
};

TEST(Watch, LooksAgainAndAgainWhileSomethingIsUnderWay) {
  Watch watch;
  Operation operation(watch);
  operation.Begin(SteadyNow() + absl::Hours(1));
  operation.AwaitLooks(3);
}

TEST(Watch, EndsWhatIsLateAndNothingBefore) {
  Watch watch;
  Operation late(watch), in_time(watch);
  const absl::Time deadline = SteadyNow() + absl::Milliseconds(5);
  in_time.Begin(SteadyNow() + absl::Hours(1));
  late.Begin(deadline);
  EXPECT_GE(late.AwaitEnd(), deadline);
  // And the other one is looked at as before.
  in_time.AwaitLooks(in_time.looks() + 2);
}

// It has fallen asleep, or is about to.
TEST(Watch, WakesForTheNextOperation) {
  Watch watch;
  Operation operation(watch);
  for (int i = 0; i < 20; ++i) {
    const int looks = operation.looks();
    operation.Begin(SteadyNow());
    operation.AwaitLooks(looks + 1);
  }
}

TEST(Watch, IsGoneWithNothingUnderWay) {
  Watch watch;
  Operation operation(watch);
}

// The first cause, also for those that come later.
TEST(Watch, EndsAllWithOne) {
  Watch watch;
  Operation idle(watch), under_way(watch);
  under_way.Begin(SteadyNow() + absl::Hours(1));
  const absl::Status why = absl::UnavailableError("rank 3 is gone");
  watch.EndAll([why] { return why; });
  watch.EndAll([] { return absl::InternalError("another"); });
  EXPECT_EQ(idle.AwaitCause(), why);
  EXPECT_EQ(under_way.AwaitCause(), why);
  Operation late(watch);
  late.Begin(SteadyNow() + absl::Hours(1));
  EXPECT_EQ(late.AwaitCause(), why);
}

TEST(Watch, AsksNobodyWhoHasGone) {
  Watch watch;
  Operation stays(watch);
  stays.Begin(SteadyNow() + absl::Hours(1));
  for (int i = 0; i < 50; ++i) {
    Operation goes(watch);
    goes.Begin(SteadyNow() + absl::Milliseconds(i % 3));
  }
  stays.AwaitLooks(stays.looks() + 2);
}

}  // namespace
}  // namespace troupe
