// A job some of whose parameters are frozen (training.freeze): what is trained
// gets the gradients that it would get if all were, what is frozen never
// changes, no plan shows in either, and checkpoints go from one to the other.
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "proto/base/glob.h"
#include "storage/checkpoint/checkpoint_dir.h"
#include "storage/checkpoint/tensor_reader.h"
#include "tests/equivalence/cluster_of_threads.h"
#include "tests/equivalence/reference_runs.h"
#include "tests/equivalence/small_job.h"
#include "tests/equivalence/tensor_job.h"

namespace troupe {
namespace {

using Patterns = std::vector<std::string>;

JobSpec Freezing(JobSpec job, const Patterns& patterns) {
  for (const std::string& pattern : patterns) {
    job.mutable_training()->add_freeze(pattern);
  }
  return job;
}

std::string Embedding(const std::string& architecture) {
  return architecture == "gpt2" ? "*.wte.*" : "*.embed_*";
}

// An empty directory, for checkpoints.
std::string NewDirectory(const std::string& name) {
  std::string directory = absl::StrCat(testing::TempDir(), "/freeze_", name);
  std::filesystem::remove_all(directory);
  return directory;
}

using State = std::map<std::string, std::vector<float>>;  // by tensor

State ReadState(const std::string& checkpoint) {
  const auto reader = TensorReader::Open(checkpoint);
  EXPECT_TRUE(reader.ok()) << reader.status();
  State state;
  for (const ManifestTensor& tensor : (*reader)->manifest().tensors) {
    std::vector<float>& values = state[tensor.name];
    values.resize(ElementCount(tensor.shape));
    EXPECT_TRUE((*reader)
                    ->Read(tensor.name, StoredDType::kF32,
                           WholeTensor(tensor.shape), values.data())
                    .ok());
  }
  return state;
}

struct Run {
  int steps = 0;
  int ranks = 1;
  std::string resume = "";
};
// What is in the checkpoint that the job ends with.
State TrainTo(JobSpec job, const std::string& directory, const Run& run) {
  job.mutable_checkpoint()->set_directory(directory);
  job.mutable_training()->set_stop_after(run.steps);
  const TrainingRun trained =
      Train(job, {.ranks = run.ranks, .resume = run.resume});
  EXPECT_TRUE(trained.status().ok()) << trained.status();
  return ReadState(CheckpointPath(directory, run.steps));
}

bool IsFrozen(const Patterns& patterns, const std::string& name) {
  for (const std::string& pattern : patterns) {
    if (GlobMatches(pattern, name)) return true;
  }
  return false;
}

bool IsMoment(const std::string& name) {
  return absl::StartsWith(name, "optimizer.");
}

// A step of SGD at a rate that changes what it is given, or hardly.
JobSpec OneStep(const std::string& architecture, double rate) {
  JobSpec job = SmallJobOf(architecture);
  job.mutable_training()->set_gradient_clipping(0);
  OptimizerSpec& optimizer = *job.mutable_optimizer();
  optimizer.Clear();
  optimizer.set_name("sgd");
  optimizer.set_lr(rate);
  optimizer.set_momentum(0.9);
  return job;
}

class FreezeArchitectures : public testing::TestWithParam<const char*> {};

// To the bit: gradients of what is trained are those of a job that trains all,
// which goldens hold to PyTorch (tests/oracle).
TEST_P(FreezeArchitectures, GradientsAreThoseOfAJobThatTrainsAll) {
  const std::string architecture = GetParam();
  const std::string embedding = Embedding(architecture);
  const State initial =
      TrainTo(OneStep(architecture, 1e-44), NewDirectory("initial"), {1});
  const State all =
      TrainTo(OneStep(architecture, 0.5), NewDirectory("all"), {1});
  const std::vector<Patterns> cases = {
      {embedding},      {"*.0.*", embedding}, {"*.?.*", embedding},
      {"*.1.*"},        {"*.mlp.*"},          {"*att*n*"},
      {"*norm*weight"}, {"*.bias"},           {"*proj*", "*c_attn*", "*dense*"},
      {"*.weight"}};
  int compared = 0;
  for (const Patterns& patterns : cases) {
    SCOPED_TRACE(absl::StrJoin(patterns, " "));
    // Not all have biases, or these names.
    Patterns known;
    size_t frozen = 0, parameters = 0;
    for (const std::string& pattern : patterns) {
      for (const auto& [name, values] : all) {
        if (IsMoment(name) || !GlobMatches(pattern, name)) continue;
        known.push_back(pattern);
        break;
      }
    }
    for (const auto& [name, values] : all) {
      if (IsMoment(name)) continue;
      parameters += 1;
      frozen += IsFrozen(known, name) ? 1 : 0;
    }
    if (known.empty() || frozen == parameters) continue;
    const State some = TrainTo(Freezing(OneStep(architecture, 0.5), known),
                               NewDirectory("some"), {1});
    ++compared;
    for (const auto& [name, values] : all) {
      if (IsMoment(name)) {
        const bool kept = !IsFrozen(
            known, name.substr(std::string("optimizer.momentum.").size()));
        ASSERT_EQ(some.count(name), kept ? 1u : 0u) << name;
        if (kept) {
          EXPECT_EQ(some.at(name), values) << name;
        }
        continue;
      }
      ASSERT_EQ(some.count(name), 1u) << name;
      const bool is_frozen = IsFrozen(known, name);
      EXPECT_EQ(some.at(name), (is_frozen ? initial : all).at(name)) << name;
    }
  }
  EXPECT_GE(compared, 6);
}

INSTANTIATE_TEST_SUITE_P(All, FreezeArchitectures,
                         testing::Values("gpt2", "gpt_neox", "llama", "qwen3"),
                         [](const auto& info) {
                           return std::string(info.param);
                         });

// How a job is cut, where its state rests, and what it computes in.
struct FreezeCase {
  const char* name;
  JobCut cut;
  const char* tier = "device";  // of all
  const char* precision = "f32";
  int micro_batch = 2;
};

JobSpec CutAs(const FreezeCase& of, const JobSpec& job) {
  JobSpec cut = CutJob(job, of.cut);
  MemorySpec& memory = *cut.mutable_memory();
  const std::string tier = of.tier;
  memory.set_optimizer(tier);
  memory.set_parameters(tier);
  memory.set_gradients(tier == "nvme" ? "host" : tier);
  return cut;
}

// Whether the case trains as one rank does with the same parameters frozen.
void ExpectTrainsTheSame(const FreezeCase& of, const std::string& architecture,
                         const Patterns& patterns, ReferenceRuns& references) {
  SCOPED_TRACE(
      absl::StrCat(of.name, ", frozen ", absl::StrJoin(patterns, " ")));
  JobSpec job =
      Freezing(WithFewSteps(TensorJob({.architecture = architecture,
                                       .micro_batch = of.micro_batch})),
               patterns);
  job.mutable_training()->set_precision(of.precision);
  const auto difference =
      references.Compare({{CutAs(of, job), job.training().steps()}}, job);
  ASSERT_TRUE(difference.ok()) << difference.status();
  EXPECT_TRUE(difference->IsRounding(references.FromF32(job)))
      << "losses " << difference->losses << ", norms " << difference->norms
      << ", weights " << difference->weights;
}

// ZeRO's levels, layouts, tiers and schedules, each with the front of the model
// frozen, where gradients end early; its middle, through which they pass; and
// its end.
TEST(Freeze, EveryPlanTrainsTheSameModel) {
  const std::vector<Patterns> frozen = {
      {"*.embed_*", "*.0.*"}, {"*.0.*"}, {"*.1.*", "model.norm.*"}};
  const std::vector<FreezeCase> cases = {
      {"replicas", {.data = 2}},
      {"states in slices", {.data = 2, .zero = 1}},
      {"gradients in slices", {.data = 2, .zero = 2}},
      {"parameters in slices", {.data = 4, .zero = 3}},
      {"tensor", {.tensor = 2}},
      {"ring", {.context = 2, .context_method = "ring"}},
      {"zero bubble", {.schedule = "zb_h1", .pipeline = 2}},
      {"interleaved", {.schedule = "interleaved_1f1b", .pipeline = 2}},
      {"bf16 on a disk", {.data = 2}, "nvme", "bf16"},
  };
  ReferenceRuns references;
  for (const Patterns& patterns : frozen) {
    for (const FreezeCase& of : cases) {
      ExpectTrainsTheSame(of, "llama", patterns, references);
    }
  }
}

// Plans for which it matters which parameters are frozen.
TEST(Freeze, PlansWithPartlyFrozenUnitsTrainTheSameModel) {
  struct Case {
    const char* architecture;
    Patterns patterns;
    FreezeCase of;
  };
  const std::vector<Case> cases = {
      // Parts that are sharded and parts that are not, of both kinds.
      {"gpt2", {"*bias", "*.0.*"}, {"tensor", {.tensor = 2}}},
      {"gpt_neox",
       {"*.0.*", "*.embed_*"},
       {"sequence", {.tensor = 2, .sequence = true, .data = 2, .zero = 1}}},
      {"gpt2",
       {"*.mlp.*", "*.wte.*"},
       {"blocks", {.tensor = 4, .tensor_method = "2d"}}},
      {"llama",
       {"*.mlp.*", "*.0.*"},
       {"cubes",
        {.tensor = 8, .tensor_method = "3d", .zero = 3},
        "device",
        "f32",
        /*micro_batch=*/4}},
      {"gpt2",
       {"*.wte.*", "*.mlp.*"},
       {"all of it in slices, below", {.data = 2, .zero = 3}, "host", "bf16"}},
      // The last stage uses the tied table, which is frozen, and holds the
      // positions with it, to which it adds nothing.
      {"gpt2",
       {"*.wte.*"},
       {"tied over stages, below",
        {.schedule = "1f1b", .pipeline = 2},
        "host"}},
      // The last stage's gradients of the tied unit are its own positions'
      // only.
      {"gpt2", {"*.wte.*"}, {"tied", {.schedule = "1f1b", .pipeline = 2}}},
      {"gpt2",
       {"*.wte.*", "*bias"},
       {"tied, split backward", {.schedule = "zb_h1", .pipeline = 4}}},
      {"gpt2",
       {"*.wte.*"},
       {"tied, interleaved", {.schedule = "interleaved_1f1b", .pipeline = 2}}},
      {"gpt2",
       {"*.wte.*"},
       {"tied over stages, in slices",
        {.schedule = "zb_h1", .pipeline = 2, .data = 2, .zero = 2},
        "host"}},
      // No stage sends gradients to the first, which joins no group for them.
      {"gpt_neox",
       {"*.0.*", "*.embed_*"},
       {"two stages without gradients", {.schedule = "1f1b", .pipeline = 4}}},
      {"gpt2",
       {"*.0.*", "*.wte.*", "*.wpe.*"},
       {"zero bubble", {.schedule = "zb_h2", .pipeline = 2, .data = 2}}},
  };
  ReferenceRuns references;
  for (const Case& each : cases) {
    ExpectTrainsTheSame(each.of, each.architecture, each.patterns, references);
  }
}

// Two runs that go on from one checkpoint, with more or less frozen than
// before: on one rank and on others.
TEST(Freeze, AJobMayGoOnWithMoreOrLessFrozen) {
  JobSpec all = WithFewSteps(SmallJob());
  all.mutable_training()->set_micro_batch_size(2);
  const Patterns patterns = {"*.wte.*", "*.h.0.*"};
  const JobSpec some = Freezing(all, patterns);
  for (const bool thaws : {false, true}) {
    SCOPED_TRACE(thaws);
    const JobSpec& before = thaws ? some : all;
    const JobSpec& after = thaws ? all : some;
    const std::string first = NewDirectory("first");
    const State at_four = TrainTo(before, first, {4});
    const std::string resume = CheckpointPath(first, 4);
    const State one =
        TrainTo(after, NewDirectory("one"), {.steps = 8, .resume = resume});
    JobSpec cut = after;
    cut.mutable_parallelism()->set_data(2);
    cut.mutable_parallelism()->set_zero(3);
    const State two = TrainTo(cut, NewDirectory("two"),
                              {.steps = 8, .ranks = 2, .resume = resume});
    ASSERT_EQ(one.size(), two.size());
    for (const auto& [name, values] : one) {
      ASSERT_EQ(two.count(name), 1u) << name;
      for (size_t i = 0; i < values.size(); ++i) {
        ASSERT_NEAR(two.at(name)[i], values[i], 1e-5) << name;
      }
      if (IsMoment(name)) continue;
      // What was frozen moves now; what is frozen now stays as it was.
      const bool moves = thaws || !IsFrozen(patterns, name);
      EXPECT_EQ(values != at_four.at(name), moves) << name;
    }
  }
}

// A moment that is not there is refused where that job trained the parameter.
TEST(Freeze, AnotherOptimizerIsStillRefused) {
  JobSpec job = Freezing(WithFewSteps(SmallJob()), {"*.wte.*"});
  const std::string first = NewDirectory("adamw");
  TrainTo(job, first, {4});
  job.mutable_optimizer()->Clear();
  job.mutable_optimizer()->set_name("sgd");
  job.mutable_optimizer()->set_lr(0.1);
  job.mutable_optimizer()->set_momentum(0.9);
  const TrainingRun refused =
      Train(job, {.ranks = 1, .resume = CheckpointPath(first, 4)});
  EXPECT_TRUE(
      absl::StrContains(refused.status().message(), "optimizer.momentum."))
      << refused.status();
}

}  // namespace
}  // namespace troupe
