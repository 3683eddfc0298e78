// A scheduler that did not run for a while (SIGSTOP, a suspended machine).
#include "gtest/gtest.h"
#include "scheduler/cluster/cluster.h"
#include "tests/scheduler/cluster/harness.h"

namespace troupe {
namespace {

// So often the daemon ticks.
constexpr absl::Duration kTick = absl::Milliseconds(200);

TEST(Pause, LeasesAndDeadlinesDoNotCountIt) {
  for (const absl::Duration pause : {absl::Seconds(6), absl::Hours(8)}) {
    Harness h;
    const std::vector<WorkerId> on = h.JoinMany(3);
    const JobId running = h.Running({on[0], on[1]});
    const JobId starting = h.Submit(SpecOf(1));
    h.Tick(kTick);
    // What the workers sent meanwhile has not been read yet.
    h.Tick(pause);
    EXPECT_EQ(h.status(running).state(), RUNNING) << h.status(running).reason();
    EXPECT_EQ(h.status(starting).state(), STARTING)
        << h.status(starting).reason();
    for (const WorkerId worker : on) {
      EXPECT_EQ(h.worker(worker).state(), WorkerStatus::BUSY)
          << h.worker(worker).reason();
    }
  }
}

TEST(Pause, AfterItALeaseIsAsLongAsEver) {
  for (const bool heard_first : {false, true}) {
    Harness h;
    const WorkerId worker = h.Join("w");
    h.Tick(kTick);
    h.now += absl::Hours(8);
    // A message may be read before the tick.
    if (heard_first) h.Heartbeat(worker);
    h.Tick(kTick);
    const absl::Time again = h.now;
    while (h.worker(worker).state() == WorkerStatus::IDLE) {
      h.Tick(kTick);
      ASSERT_LT(h.now - again, absl::Seconds(6));
    }
    EXPECT_GT(h.now - again, absl::Seconds(3));
  }
}

TEST(Pause, AJobThatHangsIsFoundAllTheSame) {
  Harness h;
  const std::vector<WorkerId> on = h.JoinMany(1);
  const JobId id = h.Running(on);
  h.Pass(absl::Seconds(30), on);
  h.Heartbeat(on[0]);
  h.Tick(absl::Hours(8));
  h.Pass(absl::Seconds(28), on);
  EXPECT_EQ(h.status(id).state(), RUNNING) << h.status(id).reason();
  h.Pass(absl::Seconds(4), on);
  EXPECT_EQ(h.status(id).state(), STOPPING);
}

// It has just started, and has not come to its first tick.
TEST(Pause, OfASchedulerThatHasJustStartedLosesNobody) {
  Harness h;
  h.cluster.Restore({}, h.now, h.actions);
  const WorkerId worker = h.Join("w0");
  h.Tick(absl::Seconds(20));
  EXPECT_TRUE(h.cluster.workers().Find(worker)->alive());
}

}  // namespace
}  // namespace troupe
