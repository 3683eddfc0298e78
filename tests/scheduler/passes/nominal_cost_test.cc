#include "scheduler/passes/nominal_cost.h"

#include "gtest/gtest.h"

namespace troupe {
namespace {

TEST(NominalCost, AddsWhatThereIs) {
  Work products;
  products.set_matmul_flops(2e12);
  Work memory;
  memory.set_memory_bytes(1e12 / 30);
  Work wait;
  wait.set_wait_seconds(3);
  EXPECT_NEAR(NominalSeconds(products), 2, 1e-6);
  EXPECT_NEAR(NominalSeconds(memory), 1, 1e-6);
  EXPECT_NEAR(NominalSeconds(wait), 3, 1e-6);
  Unit unit;
  *unit.mutable_forward() = products;
  *unit.mutable_backward_input() = memory;
  *unit.mutable_backward_weight() = wait;
  EXPECT_NEAR(NominalSeconds(unit), 6, 1e-6);
}

// A dry run orders steps by their ends: each must take some time.
TEST(NominalCost, IsNeverZero) { EXPECT_GT(NominalSeconds(Work()), 0); }

}  // namespace
}  // namespace troupe
