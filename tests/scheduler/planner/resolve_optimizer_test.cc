#include "scheduler/planner/resolve_optimizer.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/plan/optimizer_rules.h"
#include "tests/scheduler/example_job.h"

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::StartsWith;

OptimizerGroup& AddGroup(const std::string& match, JobSpec& job) {
  OptimizerGroup& group = *job.mutable_optimizer()->add_groups();
  if (!match.empty()) group.add_match(match);
  return group;
}

// Each that a plan knows what it needs has settings.
TEST(ResolveOptimizer, HasARowForEachRule) {
  for (const OptimizerRow& row : OptimizerRows()) {
    JobSpec job = ExampleJob({});
    AddGroup("*.mlp.*.weight", job).set_name(std::string(row.name));
    EXPECT_TRUE(ResolveOptimizer(job).ok()) << row.name;
  }
}

TEST(ResolveOptimizer, LionHasItsOwnDefaults) {
  JobSpec job = ExampleJob({});
  job.mutable_optimizer()->set_name("lion");
  ASSERT_TRUE(ResolveOptimizer(job).ok());
  EXPECT_THAT(job.optimizer().betas(), ElementsAre(0.9, 0.99));
  EXPECT_EQ(job.optimizer().weight_decay(), 0.1);
}

TEST(ResolveOptimizer, MuonHasItsOwnDefaults) {
  JobSpec job = ExampleJob({});
  AddGroup("*.mlp.*.weight", job).set_name("muon");
  ASSERT_TRUE(ResolveOptimizer(job).ok());
  const OptimizerSpec muon = SettingsOf(job.optimizer(), 1);
  EXPECT_EQ(muon.momentum(), 0.95);
  EXPECT_TRUE(muon.nesterov());
  EXPECT_EQ(muon.weight_decay(), 0.1);
}

TEST(ResolveOptimizer, AdafactorHasItsOwnDefaults) {
  JobSpec job = ExampleJob({});
  ASSERT_TRUE(ResolveOptimizer(job).ok());
  EXPECT_FALSE(job.optimizer().has_decay_rate());
  job = ExampleJob({});
  job.mutable_optimizer()->set_name("adafactor");
  job.mutable_optimizer()->set_eps2(0.01);
  AddGroup("*bias", job).set_scale_parameter(false);
  AddGroup("*.mlp.*", job).set_name("lion");
  ASSERT_TRUE(ResolveOptimizer(job).ok()) << ResolveOptimizer(job);
  for (const int rule : {0, 1}) {
    const OptimizerSpec adafactor = SettingsOf(job.optimizer(), rule);
    EXPECT_EQ(adafactor.decay_rate(), -0.8);
    EXPECT_EQ(adafactor.eps1(), 1e-30);
    EXPECT_EQ(adafactor.eps2(), 0.01);
    EXPECT_EQ(adafactor.scale_parameter(), rule == 0);
    EXPECT_EQ(adafactor.weight_decay(), 0);
  }
  EXPECT_FALSE(job.optimizer().groups(1).has_eps2());
}

// A group does as the optimizer where it says nothing, unless it is another
// rule: then it has that rule's defaults.
TEST(ResolveOptimizer, GroupsDoAsTheOptimizerDoes) {
  JobSpec job = ExampleJob({});
  job.mutable_optimizer()->add_betas(0.8);
  job.mutable_optimizer()->add_betas(0.999);
  job.mutable_optimizer()->set_eps(1e-6);
  AddGroup("*bias", job).set_weight_decay(0);
  AddGroup("*.mlp.*", job).set_name("lion");
  AddGroup("*.wte.*", job).set_name("sgd");
  job.mutable_optimizer()->mutable_groups(2)->set_lr_scale(0.1);
  ASSERT_TRUE(ResolveOptimizer(job).ok()) << ResolveOptimizer(job);
  const OptimizerSpec& optimizer = job.optimizer();
  EXPECT_THAT(SettingsOf(optimizer, 1).betas(), ElementsAre(0.8, 0.999));
  EXPECT_EQ(SettingsOf(optimizer, 1).eps(), 1e-6);
  EXPECT_EQ(SettingsOf(optimizer, 1).weight_decay(), 0);
  EXPECT_THAT(SettingsOf(optimizer, 2).betas(), ElementsAre(0.9, 0.99));
  EXPECT_EQ(SettingsOf(optimizer, 2).weight_decay(), 0.1);
  EXPECT_EQ(SettingsOf(optimizer, 3).name(), "sgd");
  EXPECT_EQ(LearningRateScale(optimizer, 2), 1);
  EXPECT_EQ(LearningRateScale(optimizer, 3), 0.1);
  EXPECT_EQ(RuleOf(optimizer, "transformer.h.0.mlp.c_fc.bias"), 2);
  EXPECT_EQ(RuleOf(optimizer, "transformer.h.0.attn.c_proj.bias"), 1);
  EXPECT_EQ(RuleOf(optimizer, "transformer.h.0.attn.c_proj.weight"), 0);
  // A resolved job stays as it is.
  JobSpec again = job;
  ASSERT_TRUE(ResolveOptimizer(again).ok());
  EXPECT_EQ(again.SerializeAsString(), job.SerializeAsString());
}

struct Case {
  void (*change)(JobSpec& job);
  const char* message;
};
const Case kRefused[] = {
    {[](JobSpec& j) { AddGroup("", j); },
     "optimizer.groups[0].match: is missing"},
    {[](JobSpec& j) {
       AddGroup("*bias", j);
       AddGroup("*", j).set_lr_scale(0);
     },
     "optimizer.groups[1].lr_scale: 0 is out of range"},
    {[](JobSpec& j) { AddGroup("*", j).set_lr_scale(-1); },
     "optimizer.groups[0].lr_scale: -1 is out of range"},
    {[](JobSpec& j) { AddGroup("*", j).set_name("lionn"); },
     "optimizer.groups[0].name: there is no \"lionn\"; use adafactor, adamw, "
     "lion, "
     "muon or sgd; did you mean \"lion\"?"},
    {[](JobSpec& j) { AddGroup("*", j).set_weight_decay(-1); },
     "optimizer.groups[0].weight_decay: -1 is out of range"},
    {[](JobSpec& j) { AddGroup("*", j).set_momentum(0.9); },
     "optimizer.groups[0].momentum: is for sgd; adamw has betas"},
    {[](JobSpec& j) {
       OptimizerGroup& group = AddGroup("*", j);
       group.set_name("lion");
       group.set_eps(1e-6);
     },
     "optimizer.groups[0].eps: is for adamw"},
    {[](JobSpec& j) {
       OptimizerGroup& group = AddGroup("*", j);
       group.set_name("sgd");
       group.add_betas(0.9);
     },
     "optimizer.groups[0].betas: is for adamw"},
    {[](JobSpec& j) { j.mutable_optimizer()->set_name("muon"); },
     "optimizer.name: muon trains matrices only"},
    {[](JobSpec& j) {
       OptimizerGroup& group = AddGroup("*", j);
       group.set_name("muon");
       group.set_momentum(0);
     },
     "optimizer.groups[0].momentum: muon needs a momentum above 0"},
    {[](JobSpec& j) { j.mutable_optimizer()->set_eps1(1e-20); },
     "optimizer.eps1: is for adafactor; leave it out"},
    {[](JobSpec& j) { AddGroup("*", j).set_scale_parameter(true); },
     "optimizer.groups[0].scale_parameter: is for adafactor"},
    {[](JobSpec& j) {
       j.mutable_optimizer()->set_name("adafactor");
       j.mutable_optimizer()->set_decay_rate(0);
     },
     "optimizer.decay_rate: 0 is out of range"},
    {[](JobSpec& j) {
       j.mutable_optimizer()->set_name("adafactor");
       j.mutable_optimizer()->set_eps1(0);
     },
     "optimizer.eps1: 0 is out of range"},
    {[](JobSpec& j) {
       j.mutable_optimizer()->set_name("adafactor");
       j.mutable_optimizer()->set_momentum(0.9);
     },
     "optimizer.momentum: is for sgd; adafactor keeps no momentum"},
    {[](JobSpec& j) {
       OptimizerGroup& group = AddGroup("*", j);
       group.set_name("adafactor");
       group.set_eps(1e-6);
     },
     "optimizer.groups[0].eps: is for adamw; adafactor has eps1 and eps2"},
    {[](JobSpec& j) { AddGroup("*", j).add_betas(0.9); },
     "optimizer.groups[0].betas: 1 numbers; use two"},
};

TEST(ResolveOptimizer, RefusesGroupsThatCannotBe) {
  for (const Case& c : kRefused) {
    JobSpec job = ExampleJob({});
    c.change(job);
    EXPECT_THAT(std::string(ResolveOptimizer(job).message()),
                StartsWith(c.message));
  }
}

TEST(ResolveOptimizer, AdafactorNeedsShapes) {
  JobSpec synthetic;
  synthetic.mutable_model()->set_architecture("synthetic");
  synthetic.mutable_optimizer()->set_name("adafactor");
  synthetic.mutable_optimizer()->set_lr(1e-3);
  EXPECT_THAT(std::string(ResolveOptimizer(synthetic).message()),
              StartsWith("optimizer.name: adafactor goes by the shapes"));
}

TEST(ResolveOptimizer, AnAverageHasDefaultsAndLimits) {
  JobSpec job = ExampleJob({});
  ASSERT_TRUE(ResolveOptimizer(job).ok());
  EXPECT_FALSE(job.optimizer().has_ema());
  EmaSpec& ema = *job.mutable_optimizer()->mutable_ema();
  ASSERT_TRUE(ResolveOptimizer(job).ok());
  EXPECT_EQ(ema.decay(), 0.999);
  EXPECT_FALSE(ema.warmup());
  EXPECT_TRUE(ema.has_warmup());
  for (const double decay : {0.0, 0.9999999, 1.0, -0.5, 2.0}) {
    ema.set_decay(decay);
    EXPECT_THAT(std::string(ResolveOptimizer(job).message()),
                StartsWith("optimizer.ema.decay: "));
  }
  JobSpec synthetic;
  synthetic.mutable_model()->set_architecture("synthetic");
  synthetic.mutable_optimizer()->mutable_ema();
  EXPECT_THAT(std::string(ResolveOptimizer(synthetic).message()),
              StartsWith("optimizer.ema: "));
}

}  // namespace
}  // namespace troupe
