#include "scheduler/passes/load_batches.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>

#include "gtest/gtest.h"
#include "proto/plan/find_program.h"
#include "tests/scheduler/example_plan.h"

namespace troupe {
namespace {

TEST(LoadBatches, OneMicroBatchAhead) {
  JobSpec job = ExampleJob({.micro_batches = 3, .blocks = 1});
  job.mutable_data()->set_validation_fraction(0.1);
  job.mutable_training()->set_validate_every(3);
  job.mutable_training()->set_validation_sequences(4);
  const Draft draft = ExampleDraft(job, "load batches");
  const std::string train = ProgramWords(draft.plan, 0, Program::TRAIN);
  EXPECT_EQ(train.find("L m0 | L m1 | F u0 m0 | "), 0) << train;
  EXPECT_NE(train.find("W u0 m0 | L m2 | F u0 m1 | "), std::string::npos);
  EXPECT_NE(train.find("W u0 m1 | F u0 m2 | "), std::string::npos);
  EXPECT_EQ(ProgramWords(draft.plan, 0, Program::VALIDATE),
            "L m0 | L m1 | F u0 m0 | F u1 m0 | F u2 m0 | "
            "F u0 m1 | F u1 m1 | F u2 m1");
}

TEST(LoadBatches, AtMostTwoInMemory) {
  for (int m = 1; m <= 8; ++m) {
    const Plan plan = ExamplePlan(ExampleJob({.micro_batches = m}));
    std::set<std::pair<int, int64_t>> places;  // slot and offset
    for (const Buffer& buffer :
         FindProgram(plan.roles(0), Program::TRAIN)->buffers()) {
      if (buffer.kind() == Buffer::BATCH)
        places.insert({buffer.slot(), buffer.offset()});
    }
    EXPECT_EQ(places.size(), std::min(m, 2)) << m;
  }
}

}  // namespace
}  // namespace troupe
