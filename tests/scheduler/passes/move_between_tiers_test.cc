#include "scheduler/passes/move_between_tiers.h"

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "proto/plan/buffer_kind.h"
#include "proto/plan/check_program.h"
#include "proto/plan/find_program.h"
#include "proto/plan/memory.h"
#include "proto/plan/operand.h"
#include "proto/plan/program_text.h"
#include "scheduler/passes/passes.h"
#include "scheduler/planner/resolve.h"
#include "scheduler/planner/start_draft.h"
#include "tests/scheduler/example_plan.h"

namespace troupe {
namespace {

JobSpec Job(const std::string& tier, bool clips = false) {
  JobSpec job = ExampleJob({.blocks = 1});
  job.mutable_memory()->set_optimizer(tier);
  job.mutable_training()->set_gradient_clipping(clips ? 1 : 0);
  return job;
}

std::string Step(const JobSpec& job) {
  return ProgramWords(ExampleDraft(job, "move between tiers").plan, 0,
                      Program::TRAIN);
}

// "PARAMETERS u1: device to host", by index.
std::map<int, std::string> MovesOf(const Program& program) {
  std::map<int, std::string> moves;
  for (int i = 0; i < program.instructions_size(); ++i) {
    const Instruction& move = program.instructions(i);
    if (!IsMove(move.kind())) continue;
    const Buffer& from = program.buffers(move.operands(0).buffer());
    const Buffer& to = program.buffers(move.operands(1).buffer());
    moves[i] =
        absl::StrCat(Buffer::Kind_Name(from.kind()), " u", from.unit(), ": ",
                     TierText(TierOf(from)), " to ", TierText(TierOf(to)));
  }
  return moves;
}

std::vector<std::string> MovesOfUnit(const JobSpec& job, int unit) {
  Plan plan = ExamplePlan(job);
  std::vector<std::string> moves;
  const Program& train = ProgramOf(plan, 0, Program::TRAIN);
  for (const auto& [index, text] : MovesOf(train)) {
    if (train.instructions(index).unit() == unit) moves.push_back(text);
  }
  return moves;
}

TEST(MoveBetweenTiers, NothingMovesWhereAllRestsOnTheDevice) {
  EXPECT_EQ(Step(Job("device")).find_first_of("PE"), std::string::npos);
}

// The weights and gradients come down, the weights go back; the step runs as
// soon as its unit's gradients are there.
TEST(MoveBetweenTiers, AStepOnTheHostStandsBetweenItsMoves) {
  EXPECT_EQ(Step(Job("host")),
            "L m0 | F u0 m0 | F u1 m0 | F u2 m0 | I u2 m0 | W u2 m0 | P u2 | "
            "P u2 | O u2 | E u2 | I u1 m0 | W u1 m0 | P u1 | P u1 | O u1 | "
            "E u1 | W u0 m0 | P u0 | P u0 | O u0 | E u0 | N u2 | N u1 | N u0");
  EXPECT_EQ(MovesOfUnit(Job("host"), 1),
            (std::vector<std::string>{"PARAMETERS u1: device to host",
                                      "PARAMETER_GRADIENTS u1: device to host",
                                      "PARAMETERS u1: host to device"}));
}

TEST(MoveBetweenTiers, WhatRestsOnADiskComesAndGoesByTheHost) {
  EXPECT_EQ(MovesOfUnit(Job("nvme"), 1),
            (std::vector<std::string>{"PARAMETERS u1: device to host",
                                      "PARAMETER_GRADIENTS u1: device to host",
                                      "OPTIMIZER_STATE u1: nvme to host",
                                      "PARAMETERS u1: host to device",
                                      "OPTIMIZER_STATE u1: host to nvme"}));
}

// In bf16 weights are made of the master's, and only go up.
TEST(MoveBetweenTiers, WhatIsWrittenAnewIsNotFetched) {
  JobSpec job = Job("host");
  job.mutable_training()->set_precision("bf16");
  EXPECT_EQ(MovesOfUnit(job, 1),
            (std::vector<std::string>{"PARAMETER_GRADIENTS u1: device to host",
                                      "PARAMETERS u1: host to device"}));
}

// The norm is fetched once, for all steps.
TEST(MoveBetweenTiers, WhatFollowingStepsReadIsFetchedOnce) {
  EXPECT_EQ(Step(Job("host", /*clips=*/true)),
            "L m0 | F u0 m0 | F u1 m0 | F u2 m0 | I u2 m0 | W u2 m0 | I u1 m0 "
            "| W u1 m0 | W u0 m0 | N u2 | N u1 | N u0 | P u0 | P | P u0 | O u0 "
            "| E u0 | P u1 | P u1 | O u1 | E u1 | P u2 | P u2 | O u2 | E u2");
}

// Other units come between a unit's forward and its backward.
TEST(MoveBetweenTiers, ParametersAreFetchedForEachPass) {
  JobSpec job = Job("device");
  job.mutable_memory()->set_parameters("host");
  const std::string up = "PARAMETERS u1: host to device";
  EXPECT_EQ(
      MovesOfUnit(job, 1),
      (std::vector<std::string>{up, up, up, "PARAMETERS u1: device to host"}));
  // Where the optimizer is where they rest, they come for passes only.
  job.mutable_memory()->set_optimizer("host");
  EXPECT_EQ(MovesOfUnit(job, 1),
            (std::vector<std::string>{
                up, up, "PARAMETER_GRADIENTS u1: device to host"}));
}

TEST(MoveBetweenTiers, GradientsAreAddedToWhereTheyWereLeft) {
  JobSpec job = ExampleJob({.micro_batches = 2, .blocks = 1});
  job.mutable_memory()->set_gradients("host");
  const std::string up = "PARAMETER_GRADIENTS u1: host to device";
  const std::string down = "PARAMETER_GRADIENTS u1: device to host";
  EXPECT_EQ(MovesOfUnit(job, 1),
            (std::vector<std::string>{down, up, down, up}));
  job.mutable_memory()->set_optimizer("host");
  job.mutable_memory()->set_parameters("host");
  EXPECT_EQ(MovesOfUnit(job, 1)[0], "PARAMETERS u1: host to device");
  Plan plan = ExamplePlan(job);
  const Program& train = ProgramOf(plan, 0, Program::TRAIN);
  for (const char* const text : {"N u1", "O u1"}) {
    EXPECT_EQ(NameOfLane(plan.lanes(),
                         train.instructions(IndexOf(train, text)).lane()),
              "OPTIMIZER");
  }
}

// What is used again at once, as by the last unit, never leaves the device.
TEST(MoveBetweenTiers, ActivationsRestUntilBackwardComes) {
  JobSpec job = Job("device");
  job.mutable_memory()->set_activations("nvme");
  EXPECT_EQ(MovesOfUnit(job, 2), std::vector<std::string>());
  EXPECT_EQ(MovesOfUnit(job, 1),
            (std::vector<std::string>{
                "STASH u1: device to host", "STASH u1: host to nvme",
                "STASH u1: nvme to host", "STASH u1: host to device"}));
}

TEST(MoveBetweenTiers, CopiesAreNumberedAndCounted) {
  Plan plan = ExamplePlan(Job("nvme"));
  std::set<std::string> names;
  for (const Buffer& buffer : ProgramOf(plan, 0, Program::TRAIN).buffers()) {
    if (!IsFetched(buffer)) continue;
    EXPECT_FALSE(OutlivesProgram(buffer));
    EXPECT_EQ(plan.roles(0).slots(buffer.slot()).item(), "fetched");
    EXPECT_TRUE(names
                    .insert(absl::StrCat(buffer.kind(), " ", buffer.unit(), " ",
                                         buffer.copy()))
                    .second);
  }
  EXPECT_FALSE(names.empty());
}

// Where the optimizer leaves gradients as they are, a step begins them anew.
TEST(MoveBetweenTiers, TheFirstPassOfAStepWritesGradients) {
  JobSpec job = ExampleJob({.micro_batches = 2, .blocks = 1});
  const auto accesses = [&job] {
    Plan plan = ExamplePlan(job);
    std::string marks;
    for (const Instruction& pass :
         ProgramOf(plan, 0, Program::TRAIN).instructions()) {
      for (const Instruction::Operand& operand : pass.operands()) {
        if (pass.unit() != 1 ||
            operand.part() != Instruction::WEIGHT_GRADIENTS) {
          continue;
        }
        marks += "<>*!"[operand.access()];
      }
    }
    return marks;  // two passes, the norm, the step
  };
  EXPECT_EQ(accesses(), "!*<*");
  job.mutable_memory()->set_optimizer("host");
  EXPECT_EQ(accesses(), ">*<<");
}

// Two units' states are in the host's memory at once, or three: one that comes,
// one in use, one that goes.
TEST(MoveBetweenTiers, ThereIsRoomToComeAndToGo) {
  for (const bool clips : {false, true}) {
    const auto fetched = [clips](int blocks) {
      JobSpec job = ExampleJob({.blocks = blocks});
      job.mutable_memory()->set_optimizer("nvme");
      job.mutable_training()->set_gradient_clipping(clips ? 1 : 0);
      int64_t bytes = 0;
      for (const MemoryItem& item : MemoryItems(ExamplePlan(job).roles(0))) {
        if (item.tier() == HOST && item.item() == "fetched") {
          bytes += item.bytes();
        }
      }
      return bytes;
    };
    // However many units follow each other.
    EXPECT_EQ(fetched(8), fetched(16)) << clips;
    EXPECT_GT(fetched(8), 0);
  }
}

// What moves in a step, both ways.
int64_t BytesMovedBy(const Plan& plan) {
  const Program& train = *FindProgram(plan.roles(0), Program::TRAIN);
  int64_t bytes = 0;
  for (const Instruction& move : train.instructions()) {
    if (!IsMove(move.kind())) continue;
    bytes += BytesMoved(train.buffers(move.operands(0).buffer()),
                        train.buffers(move.operands(1).buffer()));
  }
  return bytes;
}

JobSpec JobWithChunks(const std::string& megabytes, int64_t device_bytes = 0) {
  JobSpec job = ExampleJob({.micro_batches = 2, .blocks = 6});
  MemorySpec& memory = *job.mutable_memory();
  memory.set_parameters("host");
  memory.set_gradients("host");
  memory.set_activations("nvme");
  if (!megabytes.empty()) memory.set_chunk_megabytes(megabytes);
  if (device_bytes > 0) memory.set_device_bytes(device_bytes);
  return job;
}

// Up once, and down where it was changed.
TEST(MoveBetweenTiers, WhatStaysIsFetchedOnce) {
  JobSpec job = Job("device");
  job.mutable_memory()->set_parameters("host");
  job.mutable_memory()->set_activations("host");
  job.mutable_memory()->set_chunk_megabytes("auto");
  EXPECT_EQ(MovesOfUnit(job, 1),
            (std::vector<std::string>{"PARAMETERS u1: host to device",
                                      "PARAMETERS u1: device to host"}));
}

// Each room is used, none is left behind, and more of it moves less.
TEST(MoveBetweenTiers, AsMuchStaysAsThereIsRoomFor) {
  const auto on_device = [](const Plan& plan) {
    return BytesIn(plan.roles(0), DEVICE);
  };
  const Plan nothing = ExamplePlan(JobWithChunks(""));
  const int64_t least = on_device(nothing);
  const int64_t most = on_device(ExamplePlan(JobWithChunks("auto", 1 << 30)));
  ASSERT_LT(least, most);
  int64_t moved = BytesMovedBy(nothing);
  for (int room = 1; room <= 4; ++room) {
    const int64_t bytes = least + (most - least) * room / 4;
    const Plan plan = ExamplePlan(JobWithChunks("auto", bytes));
    EXPECT_LE(on_device(plan), bytes) << room;
    EXPECT_LT(BytesMovedBy(plan), moved) << room;
    moved = BytesMovedBy(plan);
  }
  // No room: as without chunks.
  const Plan none = ExamplePlan(JobWithChunks("auto", least));
  EXPECT_EQ(BytesMovedBy(none), BytesMovedBy(nothing));
  EXPECT_EQ(on_device(none), least);
}

TEST(MoveBetweenTiers, UnitsOfAChunkStayTogether) {
  const int64_t least =
      BytesIn(ExamplePlan(JobWithChunks("")).roles(0), DEVICE);
  const int64_t room = least + 4 * 13120;  // parameters of four blocks
  const Plan single = ExamplePlan(JobWithChunks("auto", room));
  const Plan pairs = ExamplePlan(JobWithChunks("0.027", room));
  const Plan all = ExamplePlan(JobWithChunks("1", room));
  EXPECT_LT(BytesMovedBy(single), BytesMovedBy(all));
  EXPECT_LT(BytesMovedBy(pairs), BytesMovedBy(all));
  EXPECT_NE(BytesMovedBy(single), BytesMovedBy(pairs));
}

struct Rests {
  const char* optimizer = "device";
  const char* parameters = "device";
  const char* gradients = "device";
  const char* activations = "device";
};
constexpr Rests kRests[] = {
    {.optimizer = "host"},
    {.optimizer = "nvme"},
    {.parameters = "host"},
    {.parameters = "nvme"},
    {.gradients = "host"},
    {.activations = "host"},
    {.activations = "nvme"},
    {.optimizer = "host", .parameters = "host", .gradients = "host"},
    {.optimizer = "nvme",
     .parameters = "nvme",
     .gradients = "host",
     .activations = "nvme"},
    {.optimizer = "host", .parameters = "nvme", .activations = "host"},
};

void SetRests(const Rests& rests, JobSpec& job) {
  MemorySpec& memory = *job.mutable_memory();
  memory.set_optimizer(rests.optimizer);
  memory.set_parameters(rests.parameters);
  memory.set_gradients(rests.gradients);
  memory.set_activations(rests.activations);
}

// The first fault of the job's plan; Ok where it is refused before.
absl::Status Checked(const JobSpec& job) {
  const absl::StatusOr<JobSpec> resolved = ResolveJob(job);
  if (!resolved.ok()) return absl::OkStatus();
  absl::StatusOr<Draft> draft = StartDraft(*resolved);
  if (!draft.ok()) return absl::OkStatus();
  RunPasses(*draft);
  return CheckPrograms(draft->plan);
}

// With every schedule and dealing; of precisions, clipping and recomputation
// each comes by turns.
TEST(MoveBetweenTiers, EveryCombinationPassesTheChecks) {
  int turn = 0;
  for (const Rests& rests : kRests) {
    for (const char* const schedule :
         {"naive", "1f1b", "gpipe", "interleaved_1f1b", "zb_h1", "zb_h2",
          "zb_v", "chimera", "pipedream", "pipedream_2bw"}) {
      for (int zero = 0; zero <= 3; ++zero, ++turn) {
        JobSpec job = ExampleJob({.data = 2, .micro_batches = 4, .blocks = 6});
        SetRests(rests, job);
        TrainingSpec& training = *job.mutable_training();
        training.set_precision(turn % 2 == 0 ? "f32" : "bf16");
        training.set_gradient_clipping(turn / 2 % 2);
        job.mutable_memory()->mutable_recompute()->set_mode(
            turn % 3 == 0 ? "full" : "none");
        job.mutable_model()->set_tie_word_embeddings(turn / 4 % 2 == 0);
        if (turn % 5 < 3) {
          job.mutable_memory()->set_chunk_megabytes(turn % 5 == 0 ? "0.02"
                                                                  : "auto");
          if (turn % 5 < 2) job.mutable_memory()->set_device_bytes(200000);
        }
        ParallelismSpec& parallelism = *job.mutable_parallelism();
        parallelism.set_zero(zero);
        parallelism.set_pipeline(2);
        parallelism.set_pipeline_schedule(schedule);
        job.mutable_checkpoint()->set_directory("checkpoints");
        ASSERT_EQ(Checked(job), absl::OkStatus())
            << rests.optimizer << " " << rests.parameters << " "
            << rests.gradients << " " << rests.activations << ", " << schedule
            << ", zero " << zero << ", turn " << turn;
      }
    }
  }
}

// Ends of a pipeline that share the embedding sum its gradients: while one
// waits for the other, nothing that the other needs waits behind the moves of
// what is summed.
TEST(MoveBetweenTiers, TiedEndsOfAPipelinePassTheChecks) {
  for (const Rests& rests : kRests) {
    for (const char* const schedule :
         {"naive", "1f1b", "gpipe", "interleaved_1f1b", "zb_h1", "zb_v",
          "pipedream_2bw"}) {
      JobSpec job = ExampleJob({.micro_batches = 8, .blocks = 6});
      job.mutable_model()->set_tie_word_embeddings(true);
      job.mutable_training()->set_gradient_clipping(0);
      SetRests(rests, job);
      job.mutable_parallelism()->set_pipeline(2);
      job.mutable_parallelism()->set_pipeline_schedule(schedule);
      ASSERT_EQ(Checked(job), absl::OkStatus())
          << rests.optimizer << " " << rests.parameters << " "
          << rests.gradients << " " << rests.activations << ", " << schedule;
    }
  }
}

TEST(MoveBetweenTiers, UnitsThatAreCutPassTheChecks) {
  for (const Rests& rests : kRests) {
    for (const bool sequence : {false, true}) {
      JobSpec job = ExampleJob({.micro_batches = 2, .blocks = 3});
      SetRests(rests, job);
      job.mutable_parallelism()->set_tensor(2);
      job.mutable_parallelism()->set_sequence_parallel(sequence);
      job.mutable_memory()->mutable_recompute()->set_mode("selective");
      ASSERT_EQ(Checked(job), absl::OkStatus());
    }
  }
}

}  // namespace
}  // namespace troupe
