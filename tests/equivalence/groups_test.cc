// Jobs whose optimizer has groups (optimizer.groups): parameters have settings,
// or a rule, of their own. Whatever the plan, each trains as one rank does, its
// states are those of its rules, and checkpoints go from one plan to another.
#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "proto/plan/memory.h"
#include "proto/plan/optimizer_rules.h"
#include "proto/plan/optimizer_states.h"
#include "storage/checkpoint/checkpoint_dir.h"
#include "storage/checkpoint/tensor_reader.h"
#include "tests/equivalence/cluster_of_threads.h"
#include "tests/equivalence/reference_runs.h"
#include "tests/equivalence/small_job.h"
#include "tests/equivalence/tensor_job.h"

namespace troupe {
namespace {

OptimizerGroup& AddGroup(const std::vector<std::string>& match, JobSpec& job) {
  OptimizerGroup& group = *job.mutable_optimizer()->add_groups();
  for (const std::string& pattern : match) group.add_match(pattern);
  return group;
}

// Other settings for norms and biases, a slow embedding, and SGD, with and
// without momentum, in place of AdamW: two states, one and none in each block.
JobSpec Grouped(JobSpec job) {
  if (job.model().architecture() == "gpt2") {
    AddGroup({"*.ln_*", "*bias"}, job).set_weight_decay(0.05);
    AddGroup({"*.wte.*"}, job).set_lr_scale(0.1);
  } else {
    AddGroup({"*norm*"}, job).set_weight_decay(0.05);
    AddGroup({"*.embed_*"}, job).set_lr_scale(0.1);
  }
  OptimizerGroup& momentum = AddGroup({"*.mlp.*weight"}, job);
  momentum.set_name("sgd");
  momentum.set_momentum(0.9);
  momentum.set_lr_scale(3);
  AddGroup({"*att*n.*proj.weight"}, job).set_name("sgd");
  return job;
}

// Lion trains matrices. A sum that is all but zero, as those of the biases of
// keys are, would get its sign from rounding.
JobSpec WithLion(JobSpec job) {
  OptimizerGroup& lion =
      AddGroup({"*.mlp.up_proj.weight", "*.mlp.down_proj.weight"}, job);
  lion.set_name("lion");
  lion.set_lr_scale(0.2);
  return job;
}

struct Case {
  const char* name;
  JobCut cut;
  const char* tier = "device";  // of all
  const char* precision = "f32";
  int micro_batch = 2;
};

JobSpec CutAs(const Case& of, const JobSpec& job) {
  JobSpec cut = CutJob(job, of.cut);
  MemorySpec& memory = *cut.mutable_memory();
  const std::string tier = of.tier;
  memory.set_optimizer(tier);
  memory.set_parameters(tier);
  memory.set_gradients(tier == "nvme" ? "host" : tier);
  return cut;
}

const Case kCases[] = {
    {"replicas", {.data = 2}},
    {"states in slices", {.data = 2, .zero = 1}},
    {"gradients in slices", {.data = 4, .zero = 2}},
    {"parameters in slices", {.data = 4, .zero = 3}},
    {"slices of two", {.data = 4, .zero = 3, .zero_size = 2}},
    {"tensor", {.tensor = 2}},
    {"sequence", {.tensor = 2, .sequence = true, .data = 2, .zero = 1}},
    {"blocks", {.tensor = 4, .tensor_method = "2d"}},
    {"ring", {.context = 2, .context_method = "ring"}},
    {"pipeline", {.schedule = "1f1b", .pipeline = 2, .data = 2}},
    {"zero bubble", {.schedule = "zb_h1", .pipeline = 2}},
    {"interleaved", {.schedule = "interleaved_1f1b", .pipeline = 2}},
    {"slices in the host's memory", {.data = 2, .zero = 1}, "host"},
    {"bf16 on a disk", {.data = 2, .zero = 3}, "nvme", "bf16"},
};

void ExpectTrainsTheSame(const Case& of, const JobSpec& job,
                         ReferenceRuns& references) {
  SCOPED_TRACE(of.name);
  JobSpec reference = job;
  reference.mutable_training()->set_precision(of.precision);
  const auto difference = references.Compare(
      {{CutAs(of, reference), reference.training().steps()}}, reference);
  ASSERT_TRUE(difference.ok()) << difference.status();
  EXPECT_TRUE(difference->IsRounding(references.FromF32(reference)))
      << "losses " << difference->losses << ", norms " << difference->norms
      << ", weights " << difference->weights;
}

TEST(Groups, EveryPlanTrainsTheSameModel) {
  ReferenceRuns references;
  for (const char* const architecture : {"gpt2", "llama"}) {
    SCOPED_TRACE(architecture);
    const JobSpec job =
        Grouped(WithFewSteps(TensorJob({.architecture = architecture})));
    for (const Case& of : kCases) ExpectTrainsTheSame(of, job, references);
  }
}

TEST(Groups, EveryPlanTrainsTheSameModelWithLion) {
  ReferenceRuns references;
  const JobSpec job =
      WithLion(WithFewSteps(TensorJob({.architecture = "llama"})));
  for (const Case& of : kCases) {
    // Sums in fewer bits are more often zero.
    if (of.precision == std::string("f32")) {
      ExpectTrainsTheSame(of, job, references);
    }
  }
}

// Muon trains matrices that no ranks share. Where slices of ZeRO hold the unit,
// each matrix is whole in one of them.
JobSpec WithMuon(JobSpec job) {
  OptimizerGroup& muon =
      AddGroup({"*.mlp.*.weight", "*.self_attn.*.weight"}, job);
  muon.set_name("muon");
  AddGroup({"*norm*"}, job).set_weight_decay(0.05);
  return job;
}

// Of rules that need whole parameters.
const Case kWholeParameterCases[] = {
    {"replicas", {.data = 2}},
    {"states in slices", {.data = 2, .zero = 1}},
    {"gradients in slices", {.data = 2, .zero = 2}},
    {"parameters in slices", {.data = 2, .zero = 3}},
    {"slices of two", {.data = 4, .zero = 3, .zero_size = 2}},
    {"unlike slices", {.data = 2, .zero = 2, .zero_weights = {3, 2}}},
    {"ring", {.zero = 1, .context = 2, .context_method = "ring"}},
    {"pipeline", {.schedule = "1f1b", .pipeline = 2, .data = 2, .zero = 1}},
    {"zero bubble", {.schedule = "zb_h1", .pipeline = 2}},
    {"bf16 in slices", {.data = 2, .zero = 3}, "device", "bf16"},
    {"in the host's memory", {.pipeline = 2}, "host"},
    {"bf16 on a disk", {.data = 2, .zero = 3}, "nvme", "bf16"},
};

// With all of them, and with parameters in slices once more where some are
// frozen.
void ExpectTrainsTheSameInSlices(JobSpec job) {
  ReferenceRuns references;
  for (const Case& of : kWholeParameterCases) {
    ExpectTrainsTheSame(of, job, references);
  }
  job.mutable_training()->add_freeze("*.0.mlp.*");
  ExpectTrainsTheSame(kWholeParameterCases[3], job, references);
}

TEST(Groups, EveryPlanTrainsTheSameModelWithMuon) {
  const JobSpec job =
      WithMuon(WithFewSteps(TensorJob({.architecture = "llama"})));
  ExpectTrainsTheSameInSlices(job);
  ReferenceRuns references;
  ExpectTrainsTheSame({"four slices", {.data = 4, .zero = 3}}, job, references);
}

TEST(Groups, GoOnInAnotherPlanWithMuon) {
  const JobSpec job =
      WithMuon(WithFewSteps(TensorJob({.architecture = "llama"})));
  ReferenceRuns references;
  const std::vector<JobCut> cuts = {
      {.data = 2, .zero = 3}, {.pipeline = 2}, {.data = 4, .zero = 1}};
  for (size_t c = 0; c < cuts.size(); ++c) {
    const JobCut& next = cuts[(c + 1) % cuts.size()];
    const auto difference = references.Compare(
        {{CutJob(job, cuts[c]), 4}, {CutJob(job, next), 8}}, job);
    ASSERT_TRUE(difference.ok()) << difference.status();
    EXPECT_TRUE(difference->IsRounding())
        << "losses " << difference->losses << ", norms " << difference->norms
        << ", weights " << difference->weights;
  }
}

TEST(Groups, MuonIsRefusedWhereMatricesAreNotWhole) {
  const JobSpec job =
      WithMuon(WithFewSteps(TensorJob({.architecture = "llama"})));
  const auto refusal = [](const JobSpec& of, int ranks) {
    return std::string(CompileForThreads(of, ranks).status().message());
  };
  EXPECT_TRUE(absl::StrContains(
      refusal(CutJob(job, {.tensor = 2}), 2),
      "optimizer.groups[0].name: muon needs whole parameters, and ranks have a "
      "part of model.layers.0."))
      << refusal(CutJob(job, {.tensor = 2}), 2);
  // Of a block one matrix is trained, for four slices.
  JobSpec one = job;
  for (const char* const pattern :
       {"*.self_attn.*", "*.mlp.gate_proj.*", "*.mlp.up_proj.*"}) {
    one.mutable_training()->add_freeze(pattern);
  }
  EXPECT_TRUE(absl::StrContains(refusal(CutJob(one, {.data = 4, .zero = 1}), 4),
                                "parallelism.zero_size: "))
      << refusal(CutJob(one, {.data = 4, .zero = 1}), 4);
  // Nor for four of unlike sizes, of which the largest is a third.
  const JobSpec unlike =
      CutJob(one, {.data = 4, .zero = 1, .zero_weights = {3, 2, 2, 2}});
  EXPECT_TRUE(absl::StrContains(refusal(unlike, 4),
                                "parallelism.zero_weights: whole matrices"))
      << refusal(unlike, 4);
  JobSpec vectors = job;
  vectors.mutable_optimizer()->mutable_groups(1)->set_name("muon");
  EXPECT_TRUE(absl::StrContains(refusal(vectors, 1), "is a vector"))
      << refusal(vectors, 1);
}

// Adafactor trains all parameters, matrices and vectors, and each of them must
// be whole on a rank. Gradients that are all but zero, as those of the biases
// of keys, would be blown up to a step by their rounding: eps1 is above that.
JobSpec WithAdafactor(JobSpec job) {
  OptimizerSpec& optimizer = *job.mutable_optimizer();
  const double lr = optimizer.lr();
  optimizer.Clear();
  optimizer.set_name("adafactor");
  optimizer.set_lr(10 * lr);
  optimizer.set_eps1(1e-10);
  optimizer.set_weight_decay(0.1);
  OptimizerGroup& slow = AddGroup({"*.mlp.*.weight"}, job);
  slow.set_scale_parameter(false);
  slow.set_lr_scale(0.1);
  AddGroup({"*.self_attn.o_proj.weight"}, job).set_name("adamw");
  return job;
}

TEST(Groups, EveryPlanTrainsTheSameModelWithAdafactor) {
  ExpectTrainsTheSameInSlices(
      WithAdafactor(WithFewSteps(TensorJob({.architecture = "llama"}))));
}

TEST(Groups, GoOnInAnotherPlanWithAdafactor) {
  JobSpec job =
      WithAdafactor(WithFewSteps(TensorJob({.architecture = "llama"})));
  ReferenceRuns references;
  const std::vector<JobCut> cuts = {
      {.data = 2, .zero = 3}, {.pipeline = 2}, {.data = 4}};
  for (const bool averages : {false, true}) {
    if (averages) job.mutable_optimizer()->mutable_ema();
    for (size_t c = 0; c < cuts.size(); ++c) {
      const JobCut& next = cuts[(c + 1) % cuts.size()];
      const auto difference = references.Compare(
          {{CutJob(job, cuts[c]), 4}, {CutJob(job, next), 8}}, job);
      ASSERT_TRUE(difference.ok()) << difference.status();
      EXPECT_TRUE(difference->IsRounding())
          << "losses " << difference->losses << ", norms " << difference->norms
          << ", weights " << difference->weights;
    }
  }
}

TEST(Groups, AdafactorKeepsLittleAndNeedsWholeParameters) {
  const JobSpec adamw = WithFewSteps(TensorJob({.architecture = "llama"}));
  const JobSpec job = WithAdafactor(adamw);
  const auto moments = [](const JobSpec& of) {
    const absl::StatusOr<Plan> plan = CompileForThreads(of, 1);
    CHECK_OK(plan.status());
    return PredictedBytes(*plan, 0, "optimizer_moments");
  };
  JobSpec all = job;
  all.mutable_optimizer()->clear_groups();
  EXPECT_LT(moments(all), moments(adamw) / 8);
  EXPECT_LT(moments(all), moments(job));
  const auto refusal = [](const JobSpec& of, int ranks) {
    return std::string(CompileForThreads(of, ranks).status().message());
  };
  EXPECT_TRUE(absl::StrContains(refusal(CutJob(all, {.tensor = 2}), 2),
                                "optimizer.name: adafactor needs whole "
                                "parameters, and ranks have a part of "))
      << refusal(CutJob(all, {.tensor = 2}), 2);
}

// With the front of the model frozen, too.
TEST(Groups, AndFrozenParameters) {
  JobSpec job = Grouped(WithFewSteps(TensorJob({.architecture = "llama"})));
  job.mutable_training()->add_freeze("*.embed_*");
  job.mutable_training()->add_freeze("*.0.mlp.*");
  ReferenceRuns references;
  for (const Case& of : {Case{"tensor", {.tensor = 2, .data = 2, .zero = 3}},
                         Case{"pipeline", {.pipeline = 2}, "host"}}) {
    ExpectTrainsTheSame(of, job, references);
  }
}

// Of each tensor a checkpoint has the states of its rule; and a job that goes
// on from it in another plan ends as the one that was never stopped.
TEST(Groups, GoOnInAnotherPlan) {
  const JobSpec job =
      WithLion(Grouped(WithFewSteps(TensorJob({.architecture = "llama"}))));
  ReferenceRuns references;
  const std::vector<JobCut> cuts = {{.data = 2, .zero = 3},
                                    {.tensor = 2, .sequence = true},
                                    {.pipeline = 2, .data = 2, .zero = 1},
                                    {.data = 4}};
  for (size_t c = 0; c < cuts.size(); ++c) {
    const JobCut& next = cuts[(c + 1) % cuts.size()];
    const auto difference = references.Compare(
        {{CutJob(job, cuts[c]), 4}, {CutJob(job, next), 8}}, job);
    ASSERT_TRUE(difference.ok()) << difference.status();
    EXPECT_TRUE(difference->IsRounding())
        << "losses " << difference->losses << ", norms " << difference->norms
        << ", weights " << difference->weights;
  }
}

TEST(Groups, CheckpointsHaveTheStatesOfEachRule) {
  JobSpec job = Grouped(WithFewSteps(SmallJob()));
  const std::string directory = testing::TempDir() + "/groups_states";
  std::filesystem::remove_all(directory);
  job.mutable_checkpoint()->set_directory(directory);
  job.mutable_training()->set_stop_after(2);
  job.mutable_parallelism()->set_data(2);
  job.mutable_parallelism()->set_zero(2);
  job.mutable_training()->set_micro_batch_size(2);
  const TrainingRun run = Train(job, {.ranks = 2});
  ASSERT_TRUE(run.status().ok()) << run.status();
  const OptimizerSpec& optimizer = run.plan.job().optimizer();
  const auto reader = TensorReader::Open(CheckpointPath(directory, 2));
  ASSERT_TRUE(reader.ok()) << reader.status();
  std::map<int, int> tensors;  // by number of states
  for (const ManifestTensor& tensor : (*reader)->manifest().tensors) {
    if (IsStateTensor(tensor.name)) continue;
    const auto states = StatesOfRule(optimizer, RuleOf(optimizer, tensor.name));
    tensors[static_cast<int>(states.size())] += 1;
    for (const char* const state : {"exp_avg", "exp_avg_sq", "momentum"}) {
      const bool kept =
          std::find(states.begin(), states.end(), state) != states.end();
      EXPECT_EQ((*reader)->Find(StateTensorName(state, tensor.name)) != nullptr,
                kept)
          << state << " of " << tensor.name;
    }
  }
  EXPECT_EQ(tensors.size(), 3u);
}

// What a group says is what that parameter does in a job where all do so.
TEST(Groups, AreWhatAJobOfTheirOwnWouldDo) {
  JobSpec all = WithFewSteps(SmallJob());
  all.mutable_training()->set_stop_after(1);
  all.mutable_training()->set_gradient_clipping(0);
  JobSpec grouped = all;
  OptimizerGroup& group = AddGroup({"*.mlp.*"}, grouped);
  group.set_name("lion");
  group.set_lr_scale(0.25);
  group.set_weight_decay(0.2);
  JobSpec lion = all;
  lion.mutable_optimizer()->Clear();
  lion.mutable_optimizer()->set_name("lion");
  lion.mutable_optimizer()->set_lr(0.25 * all.optimizer().lr());
  AddGroup({"*"}, lion).set_weight_decay(0.2);
  std::vector<std::map<std::string, std::vector<float>>> weights;
  for (JobSpec job : {all, grouped, lion}) {
    const std::string directory = testing::TempDir() + "/groups_own";
    std::filesystem::remove_all(directory);
    job.mutable_checkpoint()->set_directory(directory);
    const TrainingRun run = Train(job, {.ranks = 1});
    ASSERT_TRUE(run.status().ok()) << run.status();
    const auto reader = TensorReader::Open(CheckpointPath(directory, 1));
    ASSERT_TRUE(reader.ok()) << reader.status();
    auto& of_run = weights.emplace_back();
    for (const ManifestTensor& tensor : (*reader)->manifest().tensors) {
      if (IsStateTensor(tensor.name)) continue;
      std::vector<float>& values = of_run[tensor.name];
      values.resize(ElementCount(tensor.shape));
      ASSERT_TRUE((*reader)
                      ->Read(tensor.name, StoredDType::kF32,
                             WholeTensor(tensor.shape), values.data())
                      .ok());
    }
  }
  for (const auto& [name, values] : weights[1]) {
    const bool in_group = absl::StrContains(name, ".mlp.");
    EXPECT_EQ(values, weights[in_group ? 2 : 0].at(name)) << name;
    EXPECT_NE(values, weights[in_group ? 0 : 2].at(name)) << name;
  }
}

}  // namespace
}  // namespace troupe
