// What `troupe verify` is for: a plan that does not train what one rank trains
// is found, whatever is wrong with it and whatever the recipe; a plan that does
// is not accused.
#include <cmath>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "clients/verify/compare.h"
#include "clients/verify/judge.h"
#include "clients/verify/verify_jobs.h"
#include "gtest/gtest.h"
#include "proto/plan/mesh.h"
#include "storage/checkpoint/checkpoint_dir.h"
#include "tests/equivalence/cluster_of_threads.h"
#include "tests/equivalence/small_job.h"
#include "tests/scheduler/example_plan.h"

namespace troupe {
namespace {

constexpr int64_t kSteps = 3;
constexpr int kRanks = 2;

using Fault = std::function<void(Plan& plan)>;

// Applied to the TRAIN program of every rank.
template <typename Change>
void ForEachTrain(Plan& plan, Change change) {
  for (int rank = 0; rank < MeshSize(plan.mesh()); ++rank) {
    change(ProgramOf(plan, rank, Program::TRAIN));
  }
}

// Takes out the instructions for which `which(instruction)` is true.
template <typename Which>
void RemoveAll(Plan& plan, Which which) {
  int removed = 0;
  ForEachTrain(plan, [&](Program& train) {
    for (int i = train.instructions_size() - 1; i >= 0; --i) {
      if (!which(train.instructions(i))) continue;
      Remove(train, i);
      ++removed;
    }
  });
  ASSERT_GT(removed, 0);
}

template <typename Change>
void ChangeLoads(Plan& plan, Change change) {
  ForEachTrain(plan, [&](Program& train) {
    for (Instruction& instruction : *train.mutable_instructions()) {
      if (instruction.kind() == Instruction::LOAD_BATCH) change(instruction);
    }
  });
}

// Behind itself.
void Double(Program& train, int index) {
  const Instruction again = train.instructions(index);
  for (Instruction& instruction : *train.mutable_instructions()) {
    for (int& earlier : *instruction.mutable_after()) {
      earlier += earlier >= index ? 1 : 0;
    }
  }
  Instruction& second = *train.add_instructions();
  second = again;
  second.add_after(index);
  for (int i = train.instructions_size() - 1; i > index + 1; --i) {
    train.mutable_instructions()->SwapElements(i, i - 1);
  }
}

struct Recipe {
  const char* name;
  std::function<void(JobSpec& job)> change;
};

std::vector<Recipe> Recipes() {
  return {
      {"adamw", [](JobSpec&) {}},
      {"adamw whose gradients are always clipped",
       [](JobSpec& job) {
         job.mutable_training()->set_gradient_clipping(1e-3);
       }},
      {"adamw unclipped",
       [](JobSpec& job) { job.mutable_training()->set_gradient_clipping(0); }},
      {"sgd",
       [](JobSpec& job) {
         job.mutable_optimizer()->set_name("sgd");
         job.mutable_optimizer()->set_lr(0.1);
       }},
      {"sgd with momentum",
       [](JobSpec& job) {
         job.mutable_optimizer()->set_name("sgd");
         job.mutable_optimizer()->set_lr(0.1);
         job.mutable_optimizer()->set_momentum(0.9);
       }},
      {"a long warm-up", [](JobSpec& job) {
         job.mutable_training()->set_steps(100'000);
         job.mutable_optimizer()->set_lr(3e-4);
         job.mutable_lr_scheduler()->set_warmup_steps(2000);
       }}};
}

// Two replicas of two micro-batches each; a bucket for each unit.
JobSpec Job() {
  JobSpec job = SmallJob();
  job.mutable_training()->set_micro_batch_size(2);
  job.mutable_parallelism()->set_data(kRanks);
  job.mutable_parallelism()->set_bucket_megabytes(0.001);
  return job;
}

class BrokenPlans : public testing::TestWithParam<size_t> {
 protected:
  JobSpec JobOfRecipe() const {
    JobSpec job = Job();
    Recipes()[GetParam()].change(job);
    return job;
  }

  // What verify says of the job's plan with this fault in it. `schedule`: of a
  // pipeline in place of replicas.
  Judgement Verify(const Fault& fault, const std::string& schedule = "") {
    const std::string directory =
        absl::StrCat(testing::TempDir(), "/broken_plans");
    std::filesystem::remove_all(directory);
    VerifyJobs jobs = MakeVerifyJobs(JobOfRecipe(),
                                     {.steps = kSteps, .directory = directory});
    if (!schedule.empty()) {
      jobs.run.clear_parallelism();
      jobs.run.mutable_parallelism()->set_pipeline(kRanks);
      jobs.run.mutable_parallelism()->set_pipeline_schedule(schedule);
    }
    if (schedule.rfind("pipedream", 0) == 0) {  // which cannot clip
      jobs.run.mutable_training()->set_gradient_clipping(0);
      jobs.reference.mutable_training()->set_gradient_clipping(0);
    }
    const TrainingRun run =
        Train(jobs.run, {.ranks = kRanks, .change_plan = fault});
    const TrainingRun reference = Train(jobs.reference, {});
    EXPECT_TRUE(run.status().ok()) << run.status();
    EXPECT_TRUE(reference.status().ok()) << reference.status();
    const auto saved = [](const JobSpec& job) {
      const std::string& folder = job.checkpoint().directory();
      return RunCheckpoints{.before = CheckpointPath(folder, kSteps - 1),
                            .after = CheckpointPath(folder, kSteps)};
    };
    const auto distances =
        CompareCheckpoints({.run = saved(jobs.run),
                            .reference = saved(jobs.reference),
                            .optimizer = run.plan.job().optimizer()});
    EXPECT_TRUE(distances.ok()) << distances.status();
    if (!distances.ok()) return {};
    Judgement judgement = Judge({.steps = kSteps,
                                 .run = run.steps[0],
                                 .reference = reference.steps[0],
                                 .tensors = *distances});
    judgement.figures =
        absl::StrCat(Recipes()[GetParam()].name, ": ", judgement.figures);
    return judgement;
  }
  void ExpectCaught(const Fault& fault, const std::string& schedule = "") {
    const Judgement judgement = Verify(fault, schedule);
    EXPECT_FALSE(judgement.same) << judgement.figures;
  }
};

TEST_P(BrokenPlans, AWholeOneIsNotAccused) {
  for (const char* schedule : {"", "1f1b", "gpipe"}) {
    const Judgement judgement = Verify([](Plan&) {}, schedule);
    EXPECT_TRUE(judgement.same) << judgement.figures;
  }
}

TEST_P(BrokenPlans, GradientsThatAreNotSummed) {
  ExpectCaught([](Plan& plan) {
    RemoveAll(plan, [](const Instruction& i) {
      return i.kind() == Instruction::REDUCE_GRADS;
    });
  });
}

TEST_P(BrokenPlans, GradientsOfOneUnitThatAreNotSummed) {
  ExpectCaught([](Plan& plan) {
    RemoveAll(plan, [](const Instruction& i) {
      return i.kind() == Instruction::REDUCE_GRADS && i.unit() == 2;
    });
  });
}

TEST_P(BrokenPlans, GradientsThatAreSummedTwice) {
  ExpectCaught([](Plan& plan) {
    ForEachTrain(plan, [](Program& train) {
      for (int i = train.instructions_size() - 1; i >= 0; --i) {
        if (train.instructions(i).kind() == Instruction::REDUCE_GRADS) {
          Double(train, i);
        }
      }
    });
  });
}

TEST_P(BrokenPlans, ALostMicroBatch) {
  ExpectCaught([](Plan& plan) {
    RemoveAll(plan, [](const Instruction& i) {
      return i.kind() == Instruction::BACKWARD_WEIGHT && i.micro_batch() == 1;
    });
  });
}

TEST_P(BrokenPlans, AMicroBatchThatOneUnitLoses) {
  ExpectCaught([](Plan& plan) {
    RemoveAll(plan, [](const Instruction& i) {
      return i.kind() == Instruction::BACKWARD_WEIGHT && i.micro_batch() == 1 &&
             i.unit() == 1;
    });
  });
}

TEST_P(BrokenPlans, AMicroBatchThatIsReadTwice) {
  ExpectCaught([](Plan& plan) {
    ChangeLoads(plan, [](Instruction& load) { load.set_micro_batch(0); });
  });
}

// The samples of each step are those of the next.
TEST_P(BrokenPlans, DataInAnotherOrder) {
  ExpectCaught([](Plan& plan) {
    ChangeLoads(plan, [](Instruction& load) { load.set_ahead(1); });
  });
}

TEST_P(BrokenPlans, AUnitThatIsNotStepped) {
  ExpectCaught([](Plan& plan) {
    RemoveAll(plan, [](const Instruction& i) {
      return i.kind() == Instruction::STEP && i.unit() == 1;
    });
  });
}

TEST_P(BrokenPlans, StaleWeights) {
  ExpectCaught([](Plan&) {}, "pipedream_2bw");
  ExpectCaught([](Plan&) {}, "pipedream");
}

TEST_P(BrokenPlans, AnotherLearningRate) {
  ExpectCaught([](Plan& plan) {
    OptimizerSpec& optimizer = *plan.mutable_job()->mutable_optimizer();
    optimizer.set_lr(optimizer.lr() * 2);
  });
}

TEST_P(BrokenPlans, AnotherSeed) {
  ExpectCaught(
      [](Plan& plan) { plan.mutable_job()->mutable_training()->set_seed(9); });
}

// A unit reads memory that was never written, which is NaN here. The run ends
// at once, and verify with it.
TEST_P(BrokenPlans, NoNumber) {
  JobSpec job = JobOfRecipe();
  const TrainingRun run =
      Train(job, {.ranks = kRanks, .change_plan = [](Plan& plan) {
                    RemoveAll(plan, [](const Instruction& i) {
                      return i.kind() == Instruction::FORWARD &&
                             i.micro_batch() == 0 && i.unit() == 1;
                    });
                  }});
  EXPECT_TRUE(absl::IsFailedPrecondition(run.status())) << run.status();
}

INSTANTIATE_TEST_SUITE_P(Recipes, BrokenPlans,
                         testing::Range(size_t{0}, Recipes().size()));

}  // namespace
}  // namespace troupe
