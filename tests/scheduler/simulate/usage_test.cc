#include "scheduler/simulate/usage.h"

#include "gtest/gtest.h"
#include "tests/scheduler/planned_lanes.h"

namespace troupe {
namespace {

// ms.
InstructionTimes At(int64_t start, int64_t runs, int64_t end) {
  constexpr int64_t kMs = 1000000;
  return {.start = start * kMs, .runs = runs * kMs, .end = end * kMs};
}

TEST(UsageOf, WhatComputationHidesIsNotExposed) {
  const Program program = *ParseProgram("F u0 m0\nR u0 g0\nF u1 m0\nL m1");
  const Usage usage =
      UsageOf(program, AllLanes(),
              {.rank = 0,
               .instructions = {At(0, 0, 10), At(5, 5, 18), At(15, 15, 30),
                                At(30, 30, 90)}});
  EXPECT_DOUBLE_EQ(usage.compute_seconds, 25e-3);
  EXPECT_DOUBLE_EQ(usage.exposed_seconds, 5e-3);
}

// A RECV holds its lane from 0 on, and the peer comes at 20.
TEST(UsageOf, AWaitForThePeerIsNoCommunication) {
  const Program program = *ParseProgram("V u0 m0 p0 g0\nF u1 m0 ^0");
  const Usage usage =
      UsageOf(program, AllLanes(),
              {.rank = 1, .instructions = {At(0, 20, 23), At(23, 23, 40)}});
  EXPECT_DOUBLE_EQ(usage.compute_seconds, 17e-3);
  EXPECT_DOUBLE_EQ(usage.exposed_seconds, 3e-3);
}

}  // namespace
}  // namespace troupe
