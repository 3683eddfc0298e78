#include "worker/calibrate/machine_watch.h"

#include "gtest/gtest.h"

namespace troupe {
namespace {

// A machine of two cores that the test turns.
class Machine {
 public:
  MachineSensors Sensors() {
    return {.wall_seconds = [this] { return times.wall; },
            .times = [this] { return times; },
            .probe_us =
                [this] {
                  ++probes;
                  times.wall += 1e-4;
                  return probe_us;
                }};
  }
  // Seconds in which the cores were used so, in parts of all of them.
  struct Use {
    double busy = 0, stolen = 0, own = 0;
  };
  void Pass(double seconds, const Use& use) {
    times.wall += seconds;
    times.busy += 2 * seconds * use.busy;
    times.stolen += 2 * seconds * use.stolen;
    times.own += 2 * seconds * use.own;
  }

  MachineTimes times = {.cores = 2, .wall = 1000};
  double probe_us = 50;
  int probes = 0;
};

TEST(MachineWatch, ProbesAtItsStart) {
  Machine machine;
  MachineWatch watch(machine.Sensors());
  EXPECT_GE(machine.probes, 5);
  EXPECT_EQ(watch.Read().probe_us(), 50);
  EXPECT_EQ(watch.Read().busy_share(), 0);
}

TEST(MachineWatch, ProbesTakeAThousandthOfTheTime) {
  Machine machine;
  MachineWatch watch(machine.Sensors());
  const int before = machine.probes;
  for (int step = 0; step < 10'000; ++step) {
    machine.Pass(0.01, {});
    watch.Probe();
  }
  const double seconds = 1e-4 * (machine.probes - before);
  EXPECT_LE(seconds, 1e-3 * (machine.times.wall - 1000));
  EXPECT_GE(seconds, 0.5e-3 * (machine.times.wall - 1000));
}

TEST(MachineWatch, ALongStepIsFollowedByAFewProbes) {
  Machine machine;
  MachineWatch watch(machine.Sensors());
  const int before = machine.probes;
  machine.Pass(3600, {});
  watch.Probe();
  EXPECT_GT(machine.probes, before);
  EXPECT_LE(machine.probes, before + 8);
}

TEST(MachineWatch, SaysTheMedianOfTheLastProbes) {
  Machine machine;
  MachineWatch watch(machine.Sensors());
  for (int step = 0; step < 100; ++step) {
    machine.probe_us = step % 4 == 0 ? 5000 : 60;  // some are interrupted
    machine.Pass(1, {});
    watch.Probe();
  }
  EXPECT_EQ(watch.Read().probe_us(), 60);
}

TEST(MachineWatch, SharesAreThoseOfTheLastTenSeconds) {
  Machine machine;
  MachineWatch watch(machine.Sensors());
  for (int second = 0; second < 60; ++second) {
    machine.Pass(1, {.busy = 0.9, .stolen = 0, .own = 0.9});
    watch.Read();
  }
  for (int second = 0; second < 12; ++second) {
    machine.Pass(1, {.busy = 0.75, .stolen = 0.125, .own = 0.5});
    watch.Read();
  }
  const MachineReading reading = watch.Read();
  EXPECT_NEAR(reading.busy_share(), 0.75, 1e-6);
  EXPECT_NEAR(reading.stolen_share(), 0.125, 1e-6);
  EXPECT_NEAR(reading.own_share(), 0.5, 1e-6);
}

TEST(MachineWatch, AGpuHasSharesOnly) {
  Machine machine;
  MachineSensors sensors = machine.Sensors();
  sensors.probe_us = nullptr;
  MachineWatch watch(sensors);
  machine.Pass(5, {.busy = 0.5, .stolen = 0.1, .own = 0.5});
  watch.Probe();
  EXPECT_EQ(watch.Read().probe_us(), 0);
  EXPECT_NEAR(watch.Read().stolen_share(), 0.1, 1e-9);
}

}  // namespace
}  // namespace troupe
