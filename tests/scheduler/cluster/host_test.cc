#include "scheduler/cluster/host.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "proto/base/clock.h"
#include "scheduler/planner/planner.h"
#include "scheduler/store/database.h"
#include "storage/disk/path_calls.h"
#include "tests/scheduler/cluster/fake_compiler.h"

namespace troupe {
namespace {

// Carrying actions out takes `takes` for each event that has some.
class SlowSink final : public ActionSink {
 public:
  explicit SlowSink(ManualClock& clock) : clock_(clock) {}
  void Carry(const Actions& actions) override { clock_.Advance(takes); }
  absl::Duration takes;

 private:
  ManualClock& clock_;
};

class HostTest : public testing::Test {
 protected:
  void Join(const std::string& name) {
    host_.Apply([&](Cluster& cluster, absl::Time now, Actions& out) {
      ASSERT_TRUE(cluster.RegisterWorker(RegisterOf(name), now, out).ok());
    });
  }
  void Tick() {
    host_.Apply([](Cluster& cluster, absl::Time now, Actions& out) {
      cluster.Tick(now, out);
    });
  }
  int64_t schedules() {
    return host_.Read(
        [](const Cluster& cluster, absl::Time) { return cluster.schedules(); });
  }
  bool has_scheduling_left() {
    return host_.Read([](const Cluster& cluster, absl::Time) {
      return cluster.has_scheduling_left();
    });
  }

  FakeCompiler compiler_;
  ManualClock clock_{absl::FromUnixSeconds(1'000'000)};
  SlowSink sink_{clock_};
  Cluster cluster_{Limits(), compiler_};
  ClusterHost host_{cluster_, clock_, sink_};
};

// Clients, workers and the clock wait for the lock.
TEST_F(HostTest, WhatWaitsOrTakesLongFailsUnderTheLock) {
  const std::string path = testing::TempDir() + "/not_under_the_lock";
  struct stat info;
  EXPECT_EQ(StatPath(path, &info), -1);
  const auto looks = [&](const Cluster&, absl::Time) {
    return StatPath(path, &info);
  };
  EXPECT_DEATH(host_.Read(looks), "the file system is used while others wait");
  const auto opens = [&](Cluster&, absl::Time, Actions&) {
    return OpenPath(path, O_RDONLY);
  };
  EXPECT_DEATH(host_.Apply(opens), "the file system is used while others wait");
  absl::StatusOr<Database> store = Database::Open(path);
  ASSERT_TRUE(store.ok()) << store.status();
  const auto stores = [&](Cluster&, absl::Time, Actions&) {
    return store->Execute("CREATE TABLE t (a INTEGER)");
  };
  EXPECT_DEATH(host_.Apply(stores).IgnoreError(),
               "the store is used while others wait");
  const auto plans = [&](Cluster&, absl::Time, Actions&) {
    return CompilePlan(SpecOf(1), {}).status();
  };
  EXPECT_DEATH(host_.Apply(plans).IgnoreError(),
               "a job is planned while others wait");
  const auto cuts = [&](Cluster&, absl::Time, Actions&) {
    return AssignmentPlan(Plan(), 0);
  };
  EXPECT_DEATH(host_.Apply(cuts), "a rank's part of a plan is made while");
}

// Another thread may, meanwhile.
TEST_F(HostTest, OthersMayWaitWhileSomebodyHoldsTheLock) {
  host_.Read([](const Cluster&, absl::Time) {
    std::thread other([] {
      struct stat info;
      EXPECT_EQ(StatPath("/", &info), 0);
    });
    other.join();
  });
}

TEST_F(HostTest, SchedulesAfterEachEventWhereThatIsQuick) {
  sink_.takes = absl::Microseconds(100);
  for (int i = 0; i < 5; ++i) Join(absl::StrCat("w", i));
  EXPECT_EQ(schedules(), 5);
  EXPECT_FALSE(has_scheduling_left());
}

TEST_F(HostTest, LeavesMostOfTheTimeToOtherEventsWhereItIsSlow) {
  sink_.takes = absl::Milliseconds(1);
  // The first schedules, and takes 1 ms; then not within 4 ms.
  for (int i = 0; i < 5; ++i) Join(absl::StrCat("w", i));
  EXPECT_EQ(schedules(), 1);
  EXPECT_TRUE(has_scheduling_left());
  Join("w5");
  EXPECT_EQ(schedules(), 2);
  EXPECT_FALSE(has_scheduling_left());
}

TEST_F(HostTest, LeavesNothingBeyondATick) {
  sink_.takes = absl::Seconds(2);
  Join("w0");
  sink_.takes = absl::ZeroDuration();
  Join("w1");
  EXPECT_TRUE(has_scheduling_left());
  Tick();
  EXPECT_FALSE(has_scheduling_left());
  // However long that took, it is not left for longer than 200 ms.
  clock_.Advance(absl::Milliseconds(200));
  Join("w2");
  EXPECT_FALSE(has_scheduling_left());
}

}  // namespace
}  // namespace troupe
