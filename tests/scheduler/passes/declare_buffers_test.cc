#include "scheduler/passes/declare_buffers.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "proto/plan/program_text.h"
#include "tests/scheduler/example_plan.h"

namespace troupe {
namespace {

std::string Names(const Program& program,
                  const google::protobuf::RepeatedField<int>& indices) {
  std::vector<std::string> names;
  for (const int index : indices) {
    const Buffer& buffer = program.buffers(index);
    std::string name = Buffer::Kind_Name(buffer.kind());
    if (buffer.has_unit()) absl::StrAppend(&name, "(", buffer.unit(), ")");
    names.push_back(name);
  }
  return absl::StrJoin(names, " ");
}

// "reads -> writes" of one instruction, by its short text.
std::string Use(Plan& plan, Program::Kind kind, absl::string_view text) {
  const Program& program = ProgramOf(plan, 0, kind);
  const Instruction& instruction = program.instructions(IndexOf(program, text));
  return absl::StrCat(Names(program, instruction.reads()), " -> ",
                      Names(program, instruction.writes()));
}

// The table of docs/plan.md, row by row.
TEST(DeclareBuffers, IsTheTableOfTheReference) {
  JobSpec job = ExampleJob({.data = 2});
  job.mutable_checkpoint()->set_directory("checkpoints");
  Draft draft = ExampleDraft(job, "declare buffers");
  const struct {
    const char* instruction;
    const char* use;
  } rows[] = {
      {"L m0", " -> BATCH"},
      {"F u0 m0", "BATCH PARAMETERS(0) -> ACTIVATION(0) WORKSPACE"},
      {"F u2 m0",
       "ACTIVATION(1) PARAMETERS(2) -> ACTIVATION(2) STASH(2) WORKSPACE"},
      {"F u3 m0",
       "ACTIVATION(2) BATCH PARAMETERS(0) PARAMETERS(3) -> STASH(3) SCALARS "
       "WORKSPACE"},
      {"I u3 m0",
       "ACTIVATION(2) STASH(3) PARAMETERS(0) PARAMETERS(3) -> GRADIENT(2) "
       "WEIGHT_STASH(3) WORKSPACE"},
      {"W u3 m0",
       "ACTIVATION(2) STASH(3) WEIGHT_STASH(3) PARAMETER_GRADIENTS(0) "
       "PARAMETER_GRADIENTS(3) -> PARAMETER_GRADIENTS(0) "
       "PARAMETER_GRADIENTS(3) WORKSPACE"},
      {"I u1 m0",
       "GRADIENT(1) ACTIVATION(0) STASH(1) PARAMETERS(1) -> GRADIENT(0) "
       "WEIGHT_STASH(1) WORKSPACE"},
      {"W u1 m0",
       "GRADIENT(1) ACTIVATION(0) STASH(1) WEIGHT_STASH(1) "
       "PARAMETER_GRADIENTS(1) -> PARAMETER_GRADIENTS(1) WORKSPACE"},
      {"W u0 m0",
       "GRADIENT(0) BATCH PARAMETER_GRADIENTS(0) -> PARAMETER_GRADIENTS(0) "
       "WORKSPACE"},
      {"R u2-3 g0",
       "PARAMETER_GRADIENTS(2) PARAMETER_GRADIENTS(3) -> "
       "PARAMETER_GRADIENTS(2) PARAMETER_GRADIENTS(3)"},
      {"N u1", "PARAMETER_GRADIENTS(1) SCALARS -> SCALARS WORKSPACE"},
      {"A g0", "SCALARS -> SCALARS"},
      {"O u2",
       "PARAMETER_GRADIENTS(2) SCALARS OPTIMIZER_STATE(2) -> "
       "PARAMETER_GRADIENTS(2) OPTIMIZER_STATE(2) PARAMETERS(2) WORKSPACE"},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(Use(draft.plan, Program::TRAIN, row.instruction), row.use)
        << row.instruction;
  }
  EXPECT_EQ(Use(draft.plan, Program::CHECKPOINT, "K u1"),
            "PARAMETERS(1) OPTIMIZER_STATE(1) -> ");
}

TEST(DeclareBuffers, InBf16TheOptimizerKeepsMasterWeights) {
  JobSpec job = ExampleJob({});
  job.mutable_checkpoint()->set_directory("checkpoints");
  job.mutable_checkpoint()->set_background(true);
  job.mutable_training()->set_precision("bf16");
  Draft draft = ExampleDraft(job, "declare buffers");
  EXPECT_EQ(Use(draft.plan, Program::TRAIN, "O u2"),
            "PARAMETER_GRADIENTS(2) SCALARS OPTIMIZER_STATE(2) "
            "MASTER_WEIGHTS(2) -> PARAMETER_GRADIENTS(2) OPTIMIZER_STATE(2) "
            "MASTER_WEIGHTS(2) PARAMETERS(2) WORKSPACE");
  EXPECT_EQ(Use(draft.plan, Program::CHECKPOINT, "K u1"),
            "MASTER_WEIGHTS(1) OPTIMIZER_STATE(1) -> SNAPSHOT_COPY(1)");
  const int64_t elements = draft.plan.units(1).flat_elements();
  for (const Program& program : draft.plan.ranks(0).programs()) {
    for (const Buffer& buffer : program.buffers()) {
      if (buffer.unit() != 1) continue;
      if (buffer.kind() == Buffer::PARAMETERS) {
        EXPECT_EQ(buffer.bytes(), 2 * elements);
      } else if (buffer.kind() == Buffer::MASTER_WEIGHTS ||
                 buffer.kind() == Buffer::PARAMETER_GRADIENTS) {
        EXPECT_EQ(buffer.bytes(), 4 * elements);
      } else if (buffer.kind() == Buffer::SNAPSHOT_COPY) {
        EXPECT_EQ(buffer.bytes(), 12 * elements);
      }
    }
  }
}

TEST(DeclareBuffers, SizesAreThoseOfTheUnits) {
  Draft draft =
      ExampleDraft(ExampleJob({.micro_batches = 2}), "declare buffers");
  const Program& train = ProgramOf(draft.plan, 0, Program::TRAIN);
  int64_t stashes = 0;
  for (const Buffer& buffer : train.buffers()) {
    EXPECT_GT(buffer.bytes(), 0);
    if (buffer.kind() == Buffer::STASH) {
      EXPECT_EQ(buffer.bytes(), draft.plan.units(buffer.unit()).stash_bytes());
      ++stashes;
    }
    if (buffer.kind() == Buffer::OPTIMIZER_STATE) {
      EXPECT_EQ(buffer.bytes(), 2 * FlatBytes(draft.plan.units(buffer.unit())));
    }
  }
  EXPECT_EQ(stashes, 2 * 3);  // the embedding saves nothing
}

TEST(DeclareBuffers, SgdKeepsMomentumOnlyWhereItHasSome) {
  JobSpec job = ExampleJob({});
  job.mutable_optimizer()->set_name("sgd");
  const auto states = [&] {
    Draft draft = ExampleDraft(job, "declare buffers");
    int64_t bytes = 0;
    for (const Buffer& buffer :
         ProgramOf(draft.plan, 0, Program::TRAIN).buffers()) {
      if (buffer.kind() == Buffer::OPTIMIZER_STATE) bytes += buffer.bytes();
    }
    return bytes;
  };
  EXPECT_EQ(states(), 0);
  job.mutable_optimizer()->set_momentum(0.9);
  EXPECT_EQ(states(), 32000);
}

}  // namespace
}  // namespace troupe
