// A skip's plan is right, and whatever is wrong with its edges is named.
#include <functional>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/plan/check_program.h"
#include "proto/plan/check_units.h"
#include "proto/plan/ports.h"
#include "tests/graphs/skip_graph.h"
#include "tests/proto/plan/unit_faults.h"
#include "tests/scheduler/example_plan.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

// Embedding, blocks 0 and 1, the last one, the head; 0 is read by three.
Plan GoodPlan() { return PlanOfUnits(SkipModel({.blocks = 3})); }

std::string FaultOf(const std::function<void(Plan&)>& damage) {
  return UnitFaultOf(GoodPlan(), damage);
}

TEST(CheckEdges, ASkipPasses) {
  EXPECT_TRUE(CheckUnits(GoodPlan()).ok()) << CheckUnits(GoodPlan());
}

TEST(CheckEdges, FindsUnitsThatReadWhatIsNotThere) {
  const auto head = [](Plan& p) { return p.mutable_units(4); };
  EXPECT_THAT(
      FaultOf([&](Plan& p) { head(p)->mutable_inputs()->RemoveLast(); }),
      HasSubstr("unit 4: its table reads 2 outputs of units, but it "
                "names 1"));
  EXPECT_THAT(
      FaultOf([&](Plan& p) { head(p)->mutable_inputs(1)->set_unit(4); }),
      HasSubstr("unit 4: its input 1 is output 2 of unit 4, which does not run "
                "before it"));
  EXPECT_THAT(
      FaultOf([&](Plan& p) { head(p)->mutable_inputs(1)->set_unit(-1); }),
      HasSubstr("which does not run before it"));
  EXPECT_THAT(
      FaultOf([&](Plan& p) { head(p)->mutable_inputs(1)->set_output(3); }),
      HasSubstr("unit 4: its input 1 is output 3 of unit 1, which has 3"));
  EXPECT_THAT(
      FaultOf([&](Plan& p) { head(p)->mutable_inputs(1)->set_output(0); }),
      HasSubstr("unit 4: its input 1 is output 0 of unit 1, which unit 2 "
                "reads: a FORK makes one for each"));
  EXPECT_THAT(FaultOf([&](Plan& p) {
                UnitTable& table = *p.mutable_tables(head(p)->table());
                const int input = TensorsOfHome(table, TensorSpec::INPUT)[1];
                table.mutable_tensors(input)
                    ->mutable_dims(2)
                    ->mutable_sections(0)
                    ->set_count(23);
              }),
              HasSubstr("unit 4: its input 1 is output 2 of unit 1, which has "
                        "other dims or another type"));
}

TEST(CheckEdges, FindsOutputsThatNobodyReads) {
  EXPECT_THAT(FaultOf([](Plan& p) {
                UnitTable& table = *p.mutable_tables(p.units(4).table());
                const int input = TensorsOfHome(table, TensorSpec::INPUT)[1];
                table.mutable_tensors(input)->set_home(TensorSpec::WITHIN);
              }),
              HasSubstr("which no op before it makes"));
  EXPECT_THAT(FaultOf([](Plan& p) {
                UnitTable& table = *p.mutable_tables(p.units(1).table());
                const int output = TensorsOfHome(table, TensorSpec::OUTPUT)[2];
                table.mutable_tensors(output)->set_home(TensorSpec::WITHIN);
              }),
              HasSubstr("unit 4: its input 1 is output 2 of unit 1, which has "
                        "2"));
}

JobSpec SkipJob() {
  JobSpec job = ExampleJob({.micro_batches = 4});
  *job.mutable_model() = SkipModel({.blocks = 4, .vocabulary = 64});
  job.mutable_parallelism()->set_pipeline(3);
  return job;
}

Instruction& Find(Plan& plan, int place, Instruction::Kind kind, int unit,
                  bool gradient) {
  Program& program = *plan.mutable_roles(place)->mutable_programs(0);
  for (Instruction& instruction : *program.mutable_instructions()) {
    if (instruction.kind() == kind && instruction.unit() == unit &&
        instruction.gradient() == gradient) {
      return instruction;
    }
  }
  ADD_FAILURE() << "no such instruction";
  return *program.mutable_instructions(0);
}

std::string ProgramFaultOf(const std::function<void(Plan&)>& damage) {
  Plan plan = ExamplePlan(SkipJob());
  EXPECT_TRUE(CheckPrograms(plan).ok()) << CheckPrograms(plan);
  damage(plan);
  return std::string(CheckPrograms(plan).message());
}

TEST(CheckEdges, FindsTransfersOfAnotherOutput) {
  EXPECT_THAT(ProgramFaultOf([](Plan& p) {
                Find(p, 0, Instruction::RECV, 1, true).set_output(5);
              }),
              HasSubstr("GRADIENT buffer"));
  // The last stage reads block 0 in place of what it is to read.
  EXPECT_THAT(ProgramFaultOf([](Plan& p) {
                Find(p, 2, Instruction::FORWARD, 5, false)
                    .mutable_operands(1)
                    ->set_port(0);
              }),
              HasSubstr("has two buffers for its INPUT"));
}

}  // namespace
}  // namespace troupe
