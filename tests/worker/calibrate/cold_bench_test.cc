#include "worker/calibrate/cold_bench.h"

#include <set>

#include "gtest/gtest.h"
#include "ops/cpu/device.h"
#include "ops/reduce.h"

namespace troupe {
namespace {

TEST(ColdBench, SecondsOfIsTheMedianCall) {
  ManualClock clock;
  int calls = 0;
  // The first call is slow and does not count; of the others every third is
  // slow.
  const double seconds = SecondsOf(clock, absl::Milliseconds(100), [&] {
    clock.Advance(calls == 0       ? absl::Seconds(1)
                  : calls % 3 == 0 ? absl::Milliseconds(9)
                                   : absl::Milliseconds(4));
    ++calls;
  });
  EXPECT_DOUBLE_EQ(seconds, 0.004);
}

TEST(ColdBench, ShortCallsAreTimedInBatches) {
  ManualClock clock;
  const double seconds = SecondsOf(clock, absl::Milliseconds(1), [&] {
    clock.Advance(absl::Microseconds(2));
  });
  EXPECT_DOUBLE_EQ(seconds, 2e-6);
}

TEST(ColdBench, OperandsTakeTurns) {
  const std::unique_ptr<Device> device = NewCpuDevice({.threads = 1});
  const RealClock clock;
  const auto bench = ColdBench::Create(
      *device, clock, {.each = absl::Milliseconds(2), .elements = 1000});
  ASSERT_TRUE(bench.ok()) << bench.status();
  std::set<const void*> places;
  const auto note = [&](Device&, const FillArgs& args) {
    places.insert(args.x.raw());
  };
  const auto take = [&] { return FillArgs{.x = (*bench)->Take({160})}; };
  (*bench)->ColdSeconds<FillArgs>(note, take);
  EXPECT_EQ(places.size(), 6u);  // that many fit
  places.clear();
  (*bench)->WarmSeconds<FillArgs>(note, take);
  EXPECT_EQ(places.size(), 1u);
}

TEST(ColdBench, ColdOperandsTakeWhatCachesDoNotHold) {
  const std::unique_ptr<Device> device = NewCpuDevice({.threads = 1});
  const RealClock clock;
  const auto bench = ColdBench::Create(*device, clock,
                                       {.each = absl::Milliseconds(2),
                                        .elements = 1000,
                                        .cold_bytes = 500 * sizeof(float)});
  ASSERT_TRUE(bench.ok()) << bench.status();
  std::set<const void*> places;
  (*bench)->ColdSeconds<FillArgs>(
      [&](Device&, const FillArgs& args) { places.insert(args.x.raw()); },
      [&] { return FillArgs{.x = (*bench)->Take({160})}; });
  EXPECT_EQ(places.size(), 3u);
}

}  // namespace
}  // namespace troupe
