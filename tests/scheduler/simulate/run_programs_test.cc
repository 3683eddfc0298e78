#include "scheduler/simulate/run_programs.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/proto/plan/made_roles.h"
#include "tests/scheduler/planned_lanes.h"

namespace troupe {
namespace {

struct Texts {
  std::string train;
  std::string fill;
};

// A rank for each; all are in group 0.
Plan PlanOf(const std::vector<Texts>& ranks) {
  Plan plan = PlanOfPlaces(static_cast<int>(ranks.size()));
  for (size_t r = 0; r < ranks.size(); ++r) {
    const auto add = [&](const std::string& text, Program::Kind kind) {
      Program& program = *plan.mutable_roles(r)->add_programs();
      program = *ParseProgram(text);
      program.set_kind(kind);
    };
    add(ranks[r].train, Program::TRAIN);
    if (!ranks[r].fill.empty()) add(ranks[r].fill, Program::FILL);
  }
  return plan;
}

std::string TimesText(const RankTimes& rank) {
  std::string text;
  for (const InstructionTimes& at : rank.instructions) {
    text += std::to_string(at.start) + "-" + std::to_string(at.end) + " ";
  }
  return text;
}

// Computing takes 10, all else 3.
Effort TenAndThree(int, const Instruction& instruction) {
  if (instruction.lane() == LaneNamed("COMPUTE")) return {.compute_ns = 10};
  return {.other_ns = 3};
}

TEST(RunPrograms, ATransferHoldsItsLaneAtBothEnds) {
  const Plan plan = PlanOf({{.train = "F u0 m0\nS u0 m0 p1 g0 ^0\nF u0 m1\n"
                                      "S u0 m1 p1 g0 ^2",
                             .fill = ""},
                            {.train = "V u0 m0 p0 g0\nF u1 m0 ^0\n"
                                      "V u0 m1 p0 g0 ^1\nF u1 m1 ^2",
                             .fill = ""}});
  const ProgramsRun run = RunPrograms(plan, EachRank(plan), TenAndThree,
                                      {.seats = {}, .is_enough = nullptr});
  ASSERT_EQ(run.ranks.size(), 2u);
  EXPECT_EQ(TimesText(run.ranks[0]), "0-10 10-13 10-20 20-26 ");
  EXPECT_EQ(TimesText(run.ranks[1]), "0-13 13-23 23-26 26-36 ");
  EXPECT_EQ(run.ranks[1].instructions[0].runs, 10);
  EXPECT_EQ(run.ranks[0].instructions[3].runs, 23);
  EXPECT_EQ(run.ends, std::vector<int64_t>{36});
}

// Rank 0 begins its next program while rank 1 is still in the one before.
TEST(RunPrograms, RanksDoNotWaitBetweenPrograms) {
  const Plan plan =
      PlanOf({{.train = "F u0 m0\nS u0 m0 p1 g0 ^0", .fill = ""},
              {.train = "V u0 m0 p0 g0\nF u1 m0 ^0\nF u2 m0", .fill = ""}});
  const ProgramsRun run =
      RunPrograms(plan, EachRank(plan), TenAndThree,
                  {.seats = {}, .runs_max = 4, .is_enough = nullptr});
  EXPECT_EQ(run.ends, (std::vector<int64_t>{33, 56, 79, 102}));
  // The last step began on rank 0 when rank 1 had taken its third transfer.
  EXPECT_EQ(TimesText(run.ranks[0]), "0-10 10-23 ");
  EXPECT_EQ(TimesText(run.ranks[1]), "20-23 23-33 33-43 ");
}

TEST(RunPrograms, AFirstProgramRunsOnceAndIsNotCounted) {
  const Plan plan =
      PlanOf({{.train = "F u0 m0\nS u0 m0 p1 g0", .fill = "F u0 m0\nF u0 m1"},
              {.train = "V u0 m0 p0 g0\nF u1 m0 ^0", .fill = ""}});
  const ProgramsRun run = RunPrograms(plan, EachRank(plan), TenAndThree,
                                      {.first = Program::FILL,
                                       .seats = {},
                                       .runs_max = 2,
                                       .is_enough = nullptr});
  EXPECT_EQ(run.ends, (std::vector<int64_t>{33, 46}));
}

TEST(RunPrograms, EndsWhenItIsEnough) {
  const Plan plan = PlanOf({{.train = "F u0 m0", .fill = ""}});
  const ProgramsRun run =
      RunPrograms(plan, EachRank(plan), TenAndThree,
                  {.seats = {},
                   .runs_max = 100,
                   .is_enough = [](const std::vector<int64_t>& ends) {
                     return ends.size() == 3;
                   }});
  EXPECT_EQ(run.ends, (std::vector<int64_t>{10, 20, 30}));
  EXPECT_EQ(TimesText(run.ranks[0]), "0-10 ");
}

// Two ranks on one core: both compute at half speed while both do, and waiting
// for a transfer takes no core.
TEST(RunPrograms, RanksShareAProcessorWhileTheyCompute) {
  const Plan plan =
      PlanOf({{.train = "F u0 m0\nS u0 m0 p1 g0 ^0\nF u0 m1", .fill = ""},
              {.train = "V u0 m0 p0 g0\nF u1 m0 ^0", .fill = ""}});
  Seats seats;
  seats.processors = {{.cores = 1, .wanted = 2}};
  seats.ranks = {{.processor = 0, .cores = 1}, {.processor = 0, .cores = 1}};
  const ProgramsRun run = RunPrograms(plan, EachRank(plan), TenAndThree,
                                      {.seats = seats, .is_enough = nullptr});
  // Alone until 13, then together until rank 0 has its other 7.
  EXPECT_EQ(TimesText(run.ranks[0]), "0-10 10-13 10-27 ");
  EXPECT_EQ(TimesText(run.ranks[1]), "0-13 13-30 ");
}

TEST(RunPrograms, AWaitIsAsLongInACrowd) {
  const Plan plan = PlanOf(
      {{.train = "F u0 m0", .fill = ""}, {.train = "F u0 m0", .fill = ""}});
  Seats seats;
  seats.processors = {{.cores = 1, .wanted = 2}};
  seats.ranks = {{.processor = 0, .cores = 1}, {.processor = 0, .cores = 1}};
  const ProgramsRun run =
      RunPrograms(plan, EachRank(plan),
                  [](int, const Instruction&) {
                    return Effort{.compute_ns = 4, .other_ns = 20};
                  },
                  {.seats = seats, .is_enough = nullptr});
  EXPECT_EQ(TimesText(run.ranks[1]), "0-28 ");
}

// What a rank sends on two lanes at one time takes twice as long; what it
// receives meanwhile does not, nor do latencies.
TEST(RunPrograms, LanesShareTheLinksOfTheirRank) {
  const Plan plan = PlanOf({{.train = "S u0 m0 p1 g0\nR u0 g0", .fill = ""},
                            {.train = "V u0 m0 p0 g0\nR u0 g0", .fill = ""}});
  const auto times = [&](Link of_sum) {
    const auto effort = [&](int, const Instruction& instruction) {
      Effort of = {.other_ns = 3, .wire_ns = 10};
      const bool receives = instruction.kind() == Instruction::RECV;
      of.links_ns[receives ? NETWORK_IN : NETWORK_OUT] = 10;
      if (instruction.kind() == Instruction::REDUCE_GRADS) {
        of.links_ns = {};
        of.links_ns[of_sum] = 5;  // half of the link
      }
      return of;
    };
    return TimesText(RunPrograms(plan, EachRank(plan), effort,
                                 {.seats = {}, .is_enough = nullptr})
                         .ranks[0]);
  };
  EXPECT_EQ(times(NETWORK_OUT), "0-18 0-18 ");
  EXPECT_EQ(times(LOCAL_OUT), "0-13 0-13 ");
}

// Each has a link that carries its bytes in 10; by the adapter of both they
// take 10 for each.
TEST(RunPrograms, RanksOfAHostShareItsAdapter) {
  const Plan plan = PlanOf(
      {{.train = "R u0 g0", .fill = ""}, {.train = "R u0 g0", .fill = ""}});
  const auto effort = [&](int, const Instruction&) {
    Effort of = {.other_ns = 3, .wire_ns = 10};
    of.links_ns[NETWORK_OUT] = 10;
    of.out_bytes = 5;
    return of;
  };
  const auto times = [&](const AdapterUses& adapters) {
    return TimesText(
        RunPrograms(plan, EachRank(plan), effort,
                    {.seats = {}, .adapters = adapters, .is_enough = nullptr})
            .ranks[0]);
  };
  EXPECT_EQ(times({}), "0-13 ");
  const AdapterUse shared = {.adapter = 0, .ns_per_byte = 2};
  EXPECT_EQ(times({.adapters = 1, .of_rank = {{shared}, {shared}}}), "0-23 ");
  EXPECT_EQ(times({.adapters = 1, .of_rank = {{shared}, {}}}), "0-13 ");
}

TEST(RunPrograms, BytesThatAreOnNoLinkTakeTheirTime) {
  const Plan plan = PlanOf(
      {{.train = "R u0 g0", .fill = ""}, {.train = "R u0 g0", .fill = ""}});
  const auto effort = [](int, const Instruction&) {
    return Effort{.other_ns = 3, .wire_ns = 10};
  };
  const ProgramsRun run = RunPrograms(plan, EachRank(plan), effort,
                                      {.seats = {}, .is_enough = nullptr});
  EXPECT_EQ(TimesText(run.ranks[1]), "0-13 ");
}

}  // namespace
}  // namespace troupe
