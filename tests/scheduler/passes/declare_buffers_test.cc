#include "scheduler/passes/declare_buffers.h"

#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "proto/plan/program_text.h"
#include "tests/scheduler/example_plan.h"

namespace troupe {
namespace {

// The operands of one instruction, by its short text.
std::string Use(Plan& plan, Program::Kind kind, absl::string_view text) {
  const Program& program = ProgramOf(plan, 0, kind);
  const Instruction& instruction = program.instructions(IndexOf(program, text));
  std::vector<std::string> names;
  for (const Instruction::Operand& operand : instruction.operands()) {
    const Buffer& buffer = program.buffers(operand.buffer());
    std::string name = absl::StrCat(
        absl::AsciiStrToLower(Instruction::Part_Name(operand.part())),
        std::string(1, "<>*!"[operand.access()]),
        Buffer::Kind_Name(buffer.kind()));
    if (buffer.has_unit()) absl::StrAppend(&name, "(", buffer.unit(), ")");
    names.push_back(name);
  }
  return absl::StrJoin(names, " ");
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
      {"L m0", "batch>BATCH"},
      {"F u0 m0",
       "batch<BATCH weights<PARAMETERS(0) output>ACTIVATION(0) "
       "scratch>WORKSPACE"},
      {"F u2 m0",
       "input<ACTIVATION(1) weights<PARAMETERS(2) output>ACTIVATION(2) "
       "saved>STASH(2) scratch>WORKSPACE"},
      {"F u3 m0",
       "input<ACTIVATION(2) batch<BATCH tied_weights<PARAMETERS(0) "
       "weights<PARAMETERS(3) saved>STASH(3) totals*SCALARS "
       "scratch>WORKSPACE"},
      {"I u3 m0",
       "input<ACTIVATION(2) saved<STASH(3) tied_weights<PARAMETERS(0) "
       "weights<PARAMETERS(3) input_gradient>GRADIENT(2) "
       "saved_gradients>WEIGHT_STASH(3) scratch>WORKSPACE"},
      {"W u3 m0",
       "input<ACTIVATION(2) saved<STASH(3) saved_gradients<WEIGHT_STASH(3) "
       "tied_gradients!PARAMETER_GRADIENTS(0) "
       "weight_gradients!PARAMETER_GRADIENTS(3) scratch>WORKSPACE"},
      {"I u1 m0",
       "output_gradient<GRADIENT(1) input<ACTIVATION(0) saved<STASH(1) "
       "weights<PARAMETERS(1) input_gradient>GRADIENT(0) "
       "saved_gradients>WEIGHT_STASH(1) scratch>WORKSPACE"},
      {"W u1 m0",
       "output_gradient<GRADIENT(1) input<ACTIVATION(0) saved<STASH(1) "
       "saved_gradients<WEIGHT_STASH(1) "
       "weight_gradients!PARAMETER_GRADIENTS(1) scratch>WORKSPACE"},
      {"W u0 m0",
       "output_gradient<GRADIENT(0) batch<BATCH "
       "weight_gradients*PARAMETER_GRADIENTS(0) scratch>WORKSPACE"},
      {"R u2-3 g0",
       "weight_gradients*PARAMETER_GRADIENTS(2) "
       "weight_gradients*PARAMETER_GRADIENTS(3)"},
      {"N u1 g0",
       "weight_gradients<PARAMETER_GRADIENTS(1) totals*SCALARS "
       "scratch>WORKSPACE"},
      {"A g0", "totals*SCALARS"},
      {"O u2",
       "weight_gradients*PARAMETER_GRADIENTS(2) totals<SCALARS "
       "moments*OPTIMIZER_STATE(2) weights*PARAMETERS(2) "
       "scratch>WORKSPACE"},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(Use(draft.plan, Program::TRAIN, row.instruction), row.use)
        << row.instruction;
  }
  EXPECT_EQ(Use(draft.plan, Program::CHECKPOINT, "K u1 g0"),
            "weights<PARAMETERS(1) moments<OPTIMIZER_STATE(1)");
}

TEST(DeclareBuffers, InBf16TheOptimizerKeepsMasterWeights) {
  JobSpec job = ExampleJob({});
  job.mutable_checkpoint()->set_directory("checkpoints");
  job.mutable_checkpoint()->set_background(true);
  job.mutable_training()->set_precision("bf16");
  Draft draft = ExampleDraft(job, "declare buffers");
  EXPECT_EQ(Use(draft.plan, Program::TRAIN, "O u2"),
            "weight_gradients*PARAMETER_GRADIENTS(2) totals<SCALARS "
            "moments*OPTIMIZER_STATE(2) master*MASTER_WEIGHTS(2) "
            "weights>PARAMETERS(2) scratch>WORKSPACE");
  EXPECT_EQ(Use(draft.plan, Program::CHECKPOINT, "K u1"),
            "master<MASTER_WEIGHTS(1) moments<OPTIMIZER_STATE(1) "
            "copy>SNAPSHOT_COPY(1)");
  const int64_t elements = draft.plan.units(1).flat_elements();
  for (const Program& program : draft.plan.roles(0).programs()) {
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
      EXPECT_EQ(buffer.bytes(),
                2 * 4 * draft.plan.units(buffer.unit()).flat_elements());
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
