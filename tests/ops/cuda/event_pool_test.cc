#include "ops/cuda/event_pool.h"

#include "gtest/gtest.h"
#include "ops/cuda/cuda_device.h"

namespace troupe {
namespace {

TEST(EventPoolTest, GivesWhatWasGivenBackAndKeepsTheUsesApart) {
  const absl::StatusOr<std::unique_ptr<CudaDevice>> device =
      CudaDevice::Create(0);
  if (!device.ok()) GTEST_SKIP() << "no CUDA device: " << device.status();
  EventPool pool;
  const absl::StatusOr<cudaEvent_t> order = pool.Take(FenceUse::kOrder);
  const absl::StatusOr<cudaEvent_t> timing = pool.Take(FenceUse::kTiming);
  ASSERT_TRUE(order.ok() && timing.ok()) << order.status() << timing.status();
  EXPECT_NE(*order, *timing);
  pool.Give(*order, FenceUse::kOrder);
  pool.Give(*timing, FenceUse::kTiming);
  EXPECT_EQ(pool.Take(FenceUse::kTiming).value(), *timing);
  EXPECT_EQ(pool.Take(FenceUse::kOrder).value(), *order);
  pool.Give(*order, FenceUse::kOrder);
  pool.Give(*timing, FenceUse::kTiming);
}

}  // namespace
}  // namespace troupe
