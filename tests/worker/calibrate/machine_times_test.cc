#include "worker/calibrate/machine_times.h"

#include "gtest/gtest.h"

namespace troupe {
namespace {

constexpr char kStat[] =
    "cpu  60 60 60 9000 900 60 60 60 5 5\n"
    "cpu0 10 20 30 1000 500 1 2 3 99 99\n"
    "cpu1 100 0 0 1000 0 0 0 50\n"
    "cpu2 1 2\n"
    "intr 7 7 7 7 7 7 7 7 7 7\n"
    "cpus 9 9 9\n";

TEST(MachineTimes, SumsTheCoresThatCount) {
  const MachineTimes all = ParseProcStat(kStat, {0, 1, 2}, 100);
  EXPECT_EQ(all.cores, 3);
  EXPECT_DOUBLE_EQ(all.busy, 0.63 + 1.0 + 0.03);
  EXPECT_DOUBLE_EQ(all.stolen, 0.03 + 0.5);
  const MachineTimes one = ParseProcStat(kStat, {1, 7}, 100);
  EXPECT_EQ(one.cores, 1);
  EXPECT_DOUBLE_EQ(one.busy, 1.0);
  EXPECT_DOUBLE_EQ(one.stolen, 0.5);
}

TEST(MachineTimes, NothingReadIsNoCore) {
  EXPECT_EQ(ParseProcStat("", {0}, 100).cores, 0);
  EXPECT_EQ(ParseProcStat("cpu 1 2 3 4\n", {0}, 100).cores, 0);
  const MachineReading reading =
      SharesBetween({.wall = 1}, {.wall = 9, .own = 5});
  EXPECT_EQ(reading.own_share(), 0);
}

TEST(MachineTimes, SharesAreOfAllCores) {
  const MachineReading reading = SharesBetween(
      {.cores = 4, .wall = 10, .busy = 100, .stolen = 1, .own = 7},
      {.cores = 4, .wall = 12, .busy = 106, .stolen = 2, .own = 11});
  EXPECT_DOUBLE_EQ(reading.busy_share(), 6.0 / 8);
  EXPECT_DOUBLE_EQ(reading.stolen_share(), 1.0 / 8);
  EXPECT_DOUBLE_EQ(reading.own_share(), 4.0 / 8);
  EXPECT_DOUBLE_EQ(LostShare(reading), 3.0 / 8);
}

TEST(MachineTimes, TicksSayNothingOfAMoment) {
  const MachineReading reading =
      SharesBetween({.cores = 1, .wall = 10, .busy = 100},
                    {.cores = 1, .wall = 10.1, .busy = 100.1});
  EXPECT_EQ(reading.busy_share(), 0);
}

// What the kernel counts of this process is part of what it counts of all.
TEST(MachineTimes, OfThisMachineGrow) {
  const MachineTimes start = ReadMachineTimes();
  ASSERT_GE(start.cores, 1);
  MachineTimes end = start;
  volatile double sum = 0;
  while (end.own < start.own + 0.05) {
    for (int i = 0; i < 1'000'000; ++i) sum = sum + i;
    end = ReadMachineTimes();
  }
  EXPECT_EQ(end.cores, start.cores);
  EXPECT_GT(end.wall, start.wall);
  EXPECT_GT(end.busy, start.busy);
}

}  // namespace
}  // namespace troupe
