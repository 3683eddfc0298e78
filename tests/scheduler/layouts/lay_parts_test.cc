#include "scheduler/layouts/lay_parts.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/plan/find_program.h"
#include "proto/plan/model.h"
#include "proto/plan/optimizer_rules.h"
#include "proto/plan/optimizer_states.h"
#include "proto/plan/slices.h"
#include "scheduler/layouts/cut_units.h"
#include "scheduler/layouts/freeze.h"
#include "scheduler/layouts/layouts.h"
#include "scheduler/layouts/optimizer_groups.h"
#include "tests/scheduler/example_job.h"
#include "tests/scheduler/example_plan.h"

namespace troupe {
namespace {

using ::testing::ElementsAre;
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

OptimizerSpec AdamW() {
  OptimizerSpec optimizer;
  optimizer.set_name("adamw");
  optimizer.set_weight_decay(0.1);
  return optimizer;
}

OptimizerGroup& AddGroup(const std::vector<std::string>& match,
                         const std::string& name, OptimizerSpec& optimizer) {
  OptimizerGroup& group = *optimizer.add_groups();
  for (const std::string& pattern : match) group.add_match(pattern);
  group.set_name(name);
  group.set_lr_scale(1);
  return group;
}

// Each parameter lies in one part, which has its rule; parts tile the flat
// buffer; frozen ones are last, and those with more states first.
void ExpectLaid(const OptimizerSpec& optimizer, const UnitList& units) {
  for (const Unit& unit : units.units) {
    int64_t end = 0;
    bool frozen = false;
    size_t states = 2;
    for (int p = 0; p < unit.parts_size(); ++p) {
      const Unit::Part& part = unit.parts(p);
      EXPECT_TRUE(part.frozen() || !frozen);
      frozen = part.frozen();
      EXPECT_LE(StatesOfPart(optimizer, part).size(), states);
      states = StatesOfPart(optimizer, part).size();
      end += part.elements();
      const Range range = RangeOfPart(unit, p);
      for (const Parameter& parameter : unit.parameters()) {
        if (parameter.offset() < range.begin ||
            parameter.offset() >= range.end) {
          continue;
        }
        EXPECT_LE(parameter.offset() + LocalElements(parameter), range.end);
        EXPECT_EQ(parameter.frozen(), frozen);
        if (!frozen) {
          EXPECT_EQ(part.rule(), RuleOf(optimizer, parameter.name()));
        }
      }
    }
    EXPECT_EQ(end, unit.flat_elements());
  }
}

TEST(LayParts, GivesEachRuleAPart) {
  OptimizerSpec optimizer = AdamW();
  AddGroup({"*bias", "*.ln_*"}, "adamw", optimizer);
  AddGroup({"*.mlp.*.weight"}, "lion", optimizer);
  AddGroup({"*.wpe.*"}, "sgd", optimizer);
  TrainingSpec training;
  training.add_freeze("*.h.1.attn.*");
  for (const bool tensor : {false, true}) {
    UnitList units = Units();
    ASSERT_TRUE(MarkFrozen(training, units).ok());
    ASSERT_TRUE(MarkGroups(optimizer, units).ok());
    ParallelismSpec parallelism;
    parallelism.set_tensor(tensor ? 2 : 1);
    parallelism.set_sequence_parallel(tensor);
    if (tensor) CutUnits(RulesFor(parallelism), units);
    LayParts(optimizer, units);
    ExpectLaid(optimizer, units);
    std::vector<int> rules;
    for (const RuleRange& range : RuleRanges(units.units[1])) {
      rules.push_back(range.rule);
    }
    if (!tensor) EXPECT_THAT(rules, ElementsAre(0, 1, 2));
    EXPECT_EQ(UnitStates(optimizer, units.units[1]).size(), 2u);
    // The table of positions has no states.
    const Unit& embedding = units.units[0];
    const Range all = {0, embedding.flat_elements()};
    EXPECT_LT(UnitStates(optimizer, embedding)[0].ElementsIn(all), all.end);
  }
}

TEST(LayParts, ChangesNothingWithoutGroups) {
  const UnitList before = Units();
  UnitList after = Units();
  ASSERT_TRUE(MarkGroups(AdamW(), after).ok());
  LayParts(AdamW(), after);
  for (size_t u = 0; u < before.units.size(); ++u) {
    EXPECT_EQ(before.units[u].SerializeAsString(),
              after.units[u].SerializeAsString());
  }
}

// A group that says how much decays says so of all that it has.
TEST(OptimizerGroups, SayWhatDecays) {
  OptimizerSpec optimizer = AdamW();
  AddGroup({"*.attn.*"}, "adamw", optimizer).set_weight_decay(0.3);
  AddGroup({"*.mlp.*"}, "adamw", optimizer).set_weight_decay(0);
  AddGroup({"*.h.1.*.c_proj.*"}, "adamw", optimizer);
  UnitList units = Units();
  const UnitList before = units;
  ASSERT_TRUE(MarkGroups(optimizer, units).ok());
  for (size_t u = 0; u < units.units.size(); ++u) {
    for (int p = 0; p < units.units[u].parameters_size(); ++p) {
      const Parameter& parameter = units.units[u].parameters(p);
      const int rule = RuleOf(optimizer, parameter.name());
      const bool decays =
          rule == 1 ||
          (rule != 2 && before.units[u].parameters(p).weight_decay());
      EXPECT_EQ(parameter.weight_decay(), decays) << parameter.name();
    }
  }
}

TEST(OptimizerGroups, RefusesPatternsWithoutParameters) {
  UnitList units = Units();
  OptimizerSpec typo = AdamW();
  AddGroup({"*bias"}, "adamw", typo);
  AddGroup({"*.ln_1.*", "*.wtee.*"}, "adamw", typo);
  EXPECT_THAT(std::string(MarkGroups(typo, units).message()),
              HasSubstr("optimizer.groups[1].match: \"*.wtee.*\" matches no "
                        "parameter; did you mean transformer.wte.weight"));
  OptimizerSpec hidden = AdamW();
  AddGroup({"*.wte.*"}, "adamw", hidden);
  AddGroup({"*.w?e.*"}, "adamw", hidden);
  EXPECT_THAT(std::string(MarkGroups(hidden, units).message()),
              HasSubstr("optimizer.groups[0].match: later groups match all of "
                        "its parameters too"));
}

// Neither buckets nor sums become more where only rules differ.
TEST(LayParts, GradientsOfOneGroupOfRanksAreSummedAtOnce) {
  JobSpec job = ExampleJob({.data = 2, .micro_batches = 2});
  OptimizerSpec& optimizer = *job.mutable_optimizer();
  job.mutable_parallelism()->set_bucket_megabytes(25);
  const auto sums = [](const JobSpec& of) {
    const Plan plan = ExamplePlan(of);
    std::vector<std::string> words;
    for (const Instruction& instruction :
         FindProgram(plan.roles(0), Program::TRAIN)->instructions()) {
      if (instruction.kind() != Instruction::REDUCE_GRADS) continue;
      words.push_back(std::to_string(instruction.unit()) + "+" +
                      std::to_string(instruction.unit_count()));
    }
    return words;
  };
  const std::vector<std::string> before = sums(job);
  OptimizerGroup& group = *optimizer.add_groups();
  group.add_match("*bias");
  group.add_match("*.ln_*");
  group.set_lr_scale(0.5);
  EXPECT_EQ(sums(job), before);
  job.mutable_parallelism()->set_bucket_megabytes(1e-6);
  const Plan plan = ExamplePlan(job);
  EXPECT_THAT(ProgramWords(plan, 0, Program::TRAIN), HasSubstr("R u1 q0-1 g0"));
}

}  // namespace
}  // namespace troupe
