#include "scheduler/tiers/loss_chunks.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/plan/model.h"
#include "proto/plan/tensor_spec.h"
#include "tests/scheduler/example_plan.h"

namespace troupe {
namespace {

std::string Shapes(const ChunkShape& all, int64_t rows_max) {
  return absl::StrJoin(ChunksOf(all, rows_max), " ",
                       [](std::string* out, const ChunkShape& chunk) {
                         absl::StrAppend(out, chunk.samples, "x",
                                         chunk.positions);
                       });
}

TEST(LossChunks, AreWholeSamplesOrPiecesOfOne) {
  EXPECT_EQ(Shapes({4, 8}, 32), "4x8");
  EXPECT_EQ(Shapes({4, 8}, 1000), "4x8");
  EXPECT_EQ(Shapes({4, 8}, 31), "2x8 2x8");
  EXPECT_EQ(Shapes({5, 8}, 24), "3x8 2x8");
  EXPECT_EQ(Shapes({2, 8}, 8), "1x8 1x8");
  EXPECT_EQ(Shapes({2, 8}, 7), "1x4 1x4 1x4 1x4");
  EXPECT_EQ(Shapes({1, 8}, 3), "1x3 1x3 1x2");
  EXPECT_EQ(Shapes({1, 3}, 1), "1x1 1x1 1x1");
}

UnitList Units(const std::string& architecture) {
  ModelSpec model = ExampleJob({}).model();
  model.set_architecture(architecture);
  EXPECT_TRUE(ResolveModel(model).ok());
  return *ModelUnits(model, {.sequences = 2, .sequence_length = 8});
}

// Of the head, in the units' own work; nothing of the model is done more or
// less often.
TEST(LossChunks, DoTheSameWorkInLessMemory) {
  for (const char* const architecture : {"gpt2", "llama"}) {
    UnitList units = Units(architecture);
    const Unit whole = units.units.back();
    ASSERT_TRUE(ChunkLoss(4, units).ok());
    units.Derive();
    const Unit& head = units.units.back();
    const TensorSpec& logits = units.tables[head.table()].tensors(
        units.tables[head.table()].ops(1).outputs(0).tensor());
    EXPECT_EQ(RowsOf(logits), 4);
    EXPECT_EQ(head.segment_bytes(), BytesOf(logits));
    EXPECT_EQ(whole.stash_bytes() - head.stash_bytes(), 4 * BytesOf(logits));
    for (const auto& work :
         {&Unit::forward, &Unit::backward_input, &Unit::backward_weight}) {
      EXPECT_EQ((head.*work)().matmul_flops(), (whole.*work)().matmul_flops());
      EXPECT_NEAR((head.*work)().memory_bytes(), (whole.*work)().memory_bytes(),
                  1e-9 * whole.forward().memory_bytes());
    }
  }
}

TEST(LossChunks, LeaveAloneWhatIsNoLargerThanOne) {
  UnitList units = Units("gpt2");
  const std::string before = units.tables.back().SerializeAsString();
  ASSERT_TRUE(ChunkLoss(16, units).ok());
  ASSERT_TRUE(ChunkLoss(0, units).ok());
  EXPECT_EQ(units.tables.back().SerializeAsString(), before);
}

TEST(LossChunks, AreNotMoreThanCanBePlanned) {
  ModelSpec model = ExampleJob({}).model();
  ASSERT_TRUE(ResolveModel(model).ok());
  UnitList units = *ModelUnits(model, {.sequences = 300, .sequence_length = 8});
  const absl::Status status = ChunkLoss(8, units);
  EXPECT_EQ(
      status.message(),
      "memory.loss_chunk_tokens: 8 makes 300 chunks of a micro-batch on "
      "a rank, and at most 256 are planned; use more tokens, or a smaller "
      "training.micro_batch_size");
  EXPECT_TRUE(ChunkLoss(16, units).ok());
}

// A chunk goes back before the next goes forward, whatever the schedule does
// with the head as a whole.
TEST(LossChunks, GoBackAtOnce) {
  JobSpec job = ExampleJob({});
  job.mutable_memory()->set_loss_chunk_tokens(8);
  const Plan plan = ExamplePlan(job);
  EXPECT_THAT(ProgramWords(plan, 0, Program::TRAIN),
              testing::HasSubstr(
                  "F u3 m0 | F u3 s1 m0 | I u3 s1 m0 | W u3 s1 m0 | F u3 s2 m0 "
                  "| I u3 s2 m0 | W u3 s2 m0 | I u3 m0 | W u3 m0"));
}

}  // namespace
}  // namespace troupe
