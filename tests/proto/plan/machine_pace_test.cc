#include "proto/plan/machine_pace.h"

#include "gtest/gtest.h"

namespace troupe {
namespace {

struct Says {
  double stolen = 0, busy = 0, own = 0, probe_us = 0;
  int threads = 2;
  const char* host = "h";
};

// A worker of a machine of 4 cores whose probe took 50 us when calibrated.
WorkerDescription Worker(const Says& says) {
  WorkerDescription worker;
  worker.set_host(says.host);
  worker.set_threads(says.threads);
  worker.set_host_cores(4);
  worker.mutable_calibration()->set_probe_us(50);
  worker.mutable_machine()->set_stolen_share(says.stolen);
  worker.mutable_machine()->set_busy_share(says.busy);
  worker.mutable_machine()->set_own_share(says.own);
  worker.mutable_machine()->set_probe_us(says.probe_us);
  return worker;
}

MachinePace Pace(const std::vector<WorkerDescription>& workers) {
  std::vector<const WorkerDescription*> all;
  for (const WorkerDescription& worker : workers) all.push_back(&worker);
  const auto pace = PaceOf(all);
  EXPECT_TRUE(pace.has_value());
  return pace.value_or(MachinePace());
}

TEST(MachinePace, AQuietMachineIsAsItWas) {
  const MachinePace pace =
      Pace({Worker({.busy = 0.9, .own = 0.9, .probe_us = 50, .threads = 4})});
  EXPECT_NEAR(pace.slower(), 0, 1e-9);
  EXPECT_EQ(pace.others(), 0);
  EXPECT_EQ(PaceText(pace), "as fast as at calibration");
  EXPECT_FALSE(IsWorthSaying(pace));
}

TEST(MachinePace, TheProcessorAndTheHypervisorMultiply) {
  const MachinePace pace = Pace(
      {Worker({.stolen = 0.08, .busy = 0.5, .own = 0.5, .probe_us = 51.5})});
  EXPECT_NEAR(pace.slower(), 1.03 / 0.92 - 1, 1e-9);
  EXPECT_EQ(PaceText(pace), "12 % slower than at calibration (8 % stolen)");
  EXPECT_EQ(ShortPaceText(pace), "12 % slower (8 % stolen)");
  EXPECT_TRUE(IsWorthSaying(pace));
}

TEST(MachinePace, WithoutAProbeSharesSayIt) {
  WorkerDescription worker = Worker({.stolen = 0.2});
  EXPECT_NEAR(Pace({worker}).slower(), 0.25, 1e-9);
  worker = Worker({.stolen = 0.2, .probe_us = 100});
  worker.mutable_calibration()->clear_probe_us();
  EXPECT_NEAR(Pace({worker}).slower(), 0.25, 1e-9);
}

TEST(MachinePace, AFasterOneIsSaidToo) {
  const MachinePace pace = Pace({Worker({.probe_us = 46.5})});
  EXPECT_EQ(PaceText(pace), "7 % faster than at calibration");
  EXPECT_TRUE(IsWorthSaying(pace));
}

// Two threads want half of the cores: what others use beyond the other half is
// theirs.
TEST(MachinePace, OthersCostWhatTheFreeCoresCannotGive) {
  MachinePace pace = Pace({Worker({.busy = 0.9, .own = 0.5, .probe_us = 50})});
  EXPECT_NEAR(pace.others(), 0.4, 1e-9);
  EXPECT_NEAR(pace.slower(), 0, 1e-9);
  pace = Pace({Worker({.busy = 1, .own = 0.3, .probe_us = 50})});
  EXPECT_NEAR(pace.others(), 0.7, 1e-9);
  EXPECT_NEAR(pace.slower(), 0.5 / 0.3 - 1, 1e-9);
  EXPECT_EQ(PaceText(pace),
            "67 % slower than at calibration (others use 70 %)");
}

// As `troupe plan` finds it: the others have all, and will have to share.
TEST(MachinePace, AnIdleWorkerWouldShareTheCores) {
  EXPECT_NEAR(
      Pace({Worker({.busy = 1, .own = 0, .probe_us = 50, .threads = 4})})
          .slower(),
      1, 1e-9);
  // One thread of three on two cores.
  EXPECT_NEAR(
      Pace({Worker({.busy = 1, .own = 0.01, .probe_us = 50, .threads = 2})})
          .slower(),
      0.49, 0.01);
}

// Four workers of a thread on a machine of four cores are not in each other's
// way, and no other program is there.
TEST(MachinePace, WorkersOfOneHostAreNoOthers) {
  const WorkerDescription one =
      Worker({.busy = 0.96, .own = 0.24, .probe_us = 50, .threads = 1});
  EXPECT_NEAR(Pace({one, one, one, one}).slower(), 0, 1e-9);
  EXPECT_NEAR(Pace({one, one, one, one}).others(), 0, 1e-9);
  EXPECT_NEAR(Pace({one}).others(), 0.72, 1e-9);
}

// A rank may probe while another computes on the same core.
TEST(MachinePace, TheFastestProbeOfAHostCounts) {
  EXPECT_NEAR(
      Pace({Worker({.probe_us = 80}), Worker({.probe_us = 55})}).slower(), 0.1,
      1e-9);
}

TEST(MachinePace, TheSlowestHostCounts) {
  const MachinePace pace =
      Pace({Worker({.probe_us = 50, .host = "a"}),
            Worker({.stolen = 0.5, .probe_us = 50, .host = "b"}),
            Worker({.probe_us = 60, .host = "c"})});
  EXPECT_NEAR(pace.slower(), 1, 1e-9);
  EXPECT_NEAR(pace.stolen(), 0.5, 1e-9);
}

TEST(MachinePace, NobodySaysNothing) {
  EXPECT_FALSE(PaceOf({}).has_value());
  WorkerDescription silent = Worker({});
  silent.clear_machine();
  EXPECT_FALSE(PaceOf({&silent}).has_value());
}

TEST(MachinePace, StaysANumberWhenAllIsLost) {
  const MachinePace pace = Pace({Worker({.stolen = 1, .busy = 1})});
  EXPECT_NEAR(pace.slower(), 20 * 1.5 - 1, 1e-9);
}

}  // namespace
}  // namespace troupe
