#include "scheduler/layouts/freeze.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/plan/find_program.h"
#include "proto/plan/model.h"
#include "proto/plan/slices.h"
#include "proto/plan/trained.h"
#include "scheduler/layouts/cut_units.h"
#include "scheduler/layouts/lay_parts.h"
#include "scheduler/layouts/layouts.h"
#include "tests/scheduler/example_job.h"
#include "tests/scheduler/example_plan.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

// GPT-2: an embedding, two blocks and a head.
UnitList Units() {
  JobSpec job = ExampleJob({});
  EXPECT_TRUE(ResolveModel(*job.mutable_model()).ok());
  auto units = ModelUnits(job.model(),
                          {.sequences = 2, .sequence_length = 8, .dtype = F32});
  EXPECT_TRUE(units.ok()) << units.status();
  return *std::move(units);
}

TrainingSpec Freeze(const std::vector<std::string>& patterns) {
  TrainingSpec training;
  for (const std::string& pattern : patterns) training.add_freeze(pattern);
  return training;
}

UnitList Frozen(const std::vector<std::string>& patterns,
                const std::vector<AxisRules>& axes = {}) {
  UnitList units = Units();
  EXPECT_TRUE(MarkFrozen(Freeze(patterns), units).ok());
  CutUnits(axes, units);
  LayParts({}, units);
  LayFrozen(units);
  return units;
}

TEST(Freeze, RefusesAPatternThatMatchesNothing) {
  UnitList units = Units();
  const absl::Status refused = MarkFrozen(Freeze({"*bias", "*.wtee.*"}), units);
  EXPECT_THAT(refused.message(),
              HasSubstr("training.freeze: \"*.wtee.*\" matches no parameter; "
                        "did you mean transformer.wte.weight"));
}

TEST(Freeze, RefusesToFreezeAll) {
  UnitList units = Units();
  const absl::Status refused = MarkFrozen(Freeze({"*"}), units);
  EXPECT_THAT(refused.message(), HasSubstr("nothing is trained"));
}

// In each unit: every parameter in one part, which is frozen as it is; trained
// parts first; parts that tile the flat buffer.
void ExpectLaid(const UnitList& units) {
  for (const Unit& unit : units.units) {
    int64_t end = 0;
    bool frozen = false;
    for (int p = 0; p < unit.parts_size(); ++p) {
      const Unit::Part& part = unit.parts(p);
      EXPECT_TRUE(part.frozen() || !frozen);
      frozen = part.frozen();
      end += part.elements();
      const Range range = RangeOfPart(unit, p);
      for (const Parameter& parameter : unit.parameters()) {
        if (parameter.offset() < range.begin ||
            parameter.offset() >= range.end) {
          continue;
        }
        EXPECT_EQ(parameter.frozen(), frozen) << parameter.name();
        EXPECT_LE(parameter.offset() + LocalElements(parameter), range.end);
      }
    }
    EXPECT_EQ(end, unit.flat_elements());
    EXPECT_EQ(TrainedRange(unit).end, FrozenRange(unit).begin);
  }
}

TEST(Freeze, LaysTrainedPartsFirst) {
  const std::vector<std::string> patterns = {"*bias", "*.wte.*"};
  ExpectLaid(Frozen(patterns));
  ParallelismSpec parallelism;
  parallelism.set_tensor(2);
  parallelism.set_sequence_parallel(true);
  const UnitList cut = Frozen(patterns, RulesFor(parallelism));
  ExpectLaid(cut);
  // Whole and cut ones, each trained and frozen.
  EXPECT_GE(TrainedParts(cut.units[1]), 2);
  EXPECT_GE(cut.units[1].parts_size(), TrainedParts(cut.units[1]) + 2);
}

TEST(Freeze, ChangesNothingWhereNothingIsFrozen) {
  const UnitList before = Units();
  const UnitList after = Frozen({});
  ASSERT_EQ(before.units.size(), after.units.size());
  for (size_t u = 0; u < before.units.size(); ++u) {
    EXPECT_EQ(before.units[u].SerializeAsString(),
              after.units[u].SerializeAsString());
  }
  EXPECT_EQ(TrainedWorkShare(before), 1);
}

TEST(Freeze, LeavesOutGradientsBeforeTheFirstTrainedParameter) {
  const UnitList all = Units();
  const UnitList units = Frozen({"*.wte.*", "*.wpe.*", "*.h.0.*"});
  // Nothing backward, and nothing kept for it.
  for (const int u : {0, 1}) {
    EXPECT_EQ(units.units[u].backward_input().matmul_flops(), 0);
    EXPECT_EQ(units.units[u].backward_weight().matmul_flops(), 0);
    EXPECT_EQ(units.units[u].weight_stash_bytes(), 0);
    EXPECT_EQ(units.units[u].stash_bytes(), 0);
  }
  // Of the next block all weights', but not its input's, which its first norm
  // would make.
  const Unit& block = units.units[2];
  EXPECT_EQ(block.backward_weight().matmul_flops(),
            all.units[2].backward_weight().matmul_flops());
  EXPECT_LT(block.backward_input().memory_bytes(),
            all.units[2].backward_input().memory_bytes());
  for (const TensorSpec& tensor : units.tables[block.table()].tensors()) {
    if (tensor.home() == TensorSpec::INPUT) EXPECT_TRUE(tensor.no_gradient());
    if (tensor.home() == TensorSpec::OUTPUT) EXPECT_FALSE(tensor.no_gradient());
  }
  UnitList marked = Units();
  ASSERT_TRUE(
      MarkFrozen(Freeze({"*.wte.*", "*.wpe.*", "*.h.0.*"}), marked).ok());
  EXPECT_LT(TrainedWorkShare(marked), 0.8);
  EXPECT_GT(TrainedWorkShare(marked), 1.0 / 3);
}

// The block keeps its input gradient where something before it is trained.
TEST(Freeze, GradientsPassThroughFrozenUnits) {
  const UnitList all = Units();
  const UnitList units = Frozen({"*.h.1.*"});
  EXPECT_EQ(units.units[2].backward_input().matmul_flops(),
            all.units[2].backward_input().matmul_flops());
  EXPECT_EQ(units.units[2].backward_weight().matmul_flops(), 0);
  EXPECT_EQ(TrainedElements(units.units[2]), 0);
}

std::multiset<std::string> KindsOf(const Plan& plan, int rank) {
  std::multiset<std::string> kinds;
  for (const Instruction& instruction :
       FindProgram(plan.roles(rank), Program::TRAIN)->instructions()) {
    std::string kind = Instruction::Kind_Name(instruction.kind());
    if (instruction.gradient()) kind += " gradient";
    kinds.insert(std::move(kind));
  }
  return kinds;
}

// What the first stage of a pipeline has to do that is wholly frozen.
TEST(Freeze, AFrozenFirstStageOnlyGoesForward) {
  JobSpec job = ExampleJob({.data = 2, .micro_batches = 2});
  job.mutable_parallelism()->set_pipeline(2);
  for (const int units : {2, 2}) job.mutable_parallelism()->add_stages(units);
  job.mutable_model()->set_tie_word_embeddings(false);
  for (const char* const pattern : {"*.wte.*", "*.wpe.*", "*.h.0.*"}) {
    job.mutable_training()->add_freeze(pattern);
  }
  const Plan plan = ExamplePlan(job);
  ASSERT_EQ(plan.stages(0).unit_count(), 2);
  const std::multiset<std::string> first = KindsOf(plan, 0);
  for (const char* const kind :
       {"BACKWARD_INPUT", "BACKWARD_WEIGHT", "RECV gradient", "REDUCE_GRADS",
        "GRAD_NORM", "STEP"}) {
    EXPECT_EQ(first.count(kind), 0u) << kind;
  }
  EXPECT_EQ(first.count("SEND"), 2u);
  const std::multiset<std::string> second = KindsOf(plan, 1);
  EXPECT_EQ(second.count("SEND gradient"), 0u);
  EXPECT_EQ(second.count("STEP"), 2u);
  for (const Buffer& buffer :
       FindProgram(plan.roles(0), Program::TRAIN)->buffers()) {
    EXPECT_NE(buffer.kind(), Buffer::PARAMETER_GRADIENTS);
    EXPECT_NE(buffer.kind(), Buffer::OPTIMIZER_STATE);
  }
  EXPECT_GT(plan.derived().frozen_parameters(), 0);
  EXPECT_LT(plan.derived().frozen_parameters(), plan.derived().parameters());
}

}  // namespace
}  // namespace troupe
