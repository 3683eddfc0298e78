// Replicas that take turns (servers.mode: async, bounded) do not train the
// model that a single rank trains: their gradients are late. They train the one
// that a plain loop gives for the order in which their gradients came, which
// the servers record (Turn); with a seed for the order, to the bit. And none
// waits for a slow one.
#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "proto/plan/ranks_needed.h"
#include "proto/plan/served.h"
#include "storage/checkpoint/checkpoint_dir.h"
#include "tests/equivalence/cluster_of_threads.h"
#include "tests/equivalence/delayed_gradients.h"
#include "tests/equivalence/same_training.h"
#include "tests/equivalence/small_job.h"
#include "tests/equivalence/state_difference.h"
#include "tests/equivalence/tensor_job.h"
#include "worker/model/build_units.h"

namespace troupe {
namespace {

constexpr int kSteps = 24;

struct Turned {
  std::string mode = "async";
  int replicas = 3;
  int servers = 2;
  int seed = -1;       // of the order; -1: as they come
  int staleness = -1;  // -1: not said
  std::string architecture = "gpt2";
};

JobSpec Job(const Turned& turned) {
  JobSpec job = TensorJob({.architecture = turned.architecture,
                           .tied = turned.architecture == "gpt2",
                           .dropout = 0.1});
  job.mutable_training()->set_steps(kSteps);
  job.mutable_training()->set_validate_every(0);
  job.mutable_training()->set_micro_batch_size(1);
  job.mutable_training()->set_global_batch_size(3);
  job.mutable_training()->set_gradient_clipping(1);
  job = CutJob(job, {.data = turned.replicas});
  job.mutable_parallelism()->set_servers(turned.servers);
  ServersSpec& servers = *job.mutable_servers();
  servers.set_mode(turned.mode);
  if (turned.seed >= 0) servers.set_order_seed(turned.seed);
  if (turned.staleness >= 0) servers.set_staleness(turned.staleness);
  return job;
}

TrainingRun TrainTurned(const JobSpec& job, TrainOptions options = {}) {
  options.ranks = RanksNeeded(job);
  return Train(job, options);
}

const std::vector<StepRecord>& OfServer(const TrainingRun& run) {
  return run.steps.at(FirstThatKnowsScalars(run.plan));
}

std::vector<DelayedStep> ReferenceOf(const TrainingRun& run) {
  const std::vector<StepRecord>& steps = OfServer(run);
  DelayedTraining training = {.job = run.plan.job(),
                              .stage_units = {run.plan.units_size()}};
  training.job.mutable_parallelism()->set_data(1);
  training.version = [&steps](const Occasion& occasion) {
    return steps.at(occasion.step).turn().weights_step();
  };
  training.batch = [&steps](int64_t step) {
    return steps.at(step).turn().batch() - 1;
  };
  return TrainWithDelays(training);
}

void ExpectReference(const TrainingRun& run) {
  const std::vector<DelayedStep> reference = ReferenceOf(run);
  const std::vector<StepRecord>& steps = OfServer(run);
  ASSERT_EQ(steps.size(), reference.size());
  for (size_t i = 0; i < steps.size(); ++i) {
    EXPECT_EQ(steps[i].step(), static_cast<int64_t>(i) + 1);
    EXPECT_NEAR(steps[i].loss(), reference[i].loss, 1e-5 * reference[i].loss)
        << "step " << i + 1;
    EXPECT_NEAR(steps[i].grad_norm(), reference[i].gradient_norm,
                1e-5 * reference[i].gradient_norm)
        << "step " << i + 1;
  }
}

// Each batch is used once; and how late gradients were, at most.
int64_t ExpectEachBatchOnce(const std::vector<StepRecord>& steps) {
  std::set<int64_t> batches;
  int64_t latest = 0;
  for (const StepRecord& step : steps) {
    EXPECT_TRUE(batches.insert(step.turn().batch()).second);
    EXPECT_LT(step.turn().weights_step(), step.step());
    latest = std::max(latest, step.step() - 1 - step.turn().weights_step());
  }
  EXPECT_EQ(*batches.begin(), 1);
  EXPECT_EQ(*batches.rbegin(), static_cast<int64_t>(steps.size()));
  return latest;
}

// How many steps more than the slowest a replica had done when it began one.
int64_t FurthestAhead(const std::vector<StepRecord>& steps, int replicas) {
  int64_t furthest = 0;
  for (const StepRecord& step : steps) {
    std::vector<int64_t> done(replicas, 0);
    for (int64_t i = 0; i < step.turn().weights_step(); ++i) {
      ++done[steps[i].turn().replica()];
    }
    furthest =
        std::max(furthest, done[step.turn().replica()] -
                               *std::min_element(done.begin(), done.end()));
  }
  return furthest;
}

void ExpectSameBits(const TrainingRun& run, const TrainingRun& want) {
  const std::vector<StepRecord>& steps = OfServer(run);
  const std::vector<StepRecord>& wanted = OfServer(want);
  ASSERT_EQ(steps.size(), wanted.size());
  for (size_t i = 0; i < steps.size(); ++i) {
    EXPECT_EQ(steps[i].loss(), wanted[i].loss()) << "step " << i + 1;
    EXPECT_EQ(steps[i].grad_norm(), wanted[i].grad_norm()) << "step " << i + 1;
    EXPECT_EQ(steps[i].turn().SerializeAsString(),
              wanted[i].turn().SerializeAsString());
  }
}

std::string Directory(const std::string& name) {
  const std::string directory = absl::StrCat(testing::TempDir(), "/", name);
  std::filesystem::remove_all(directory);
  return directory;
}

class Turns : public testing::TestWithParam<Turned> {};

TEST_P(Turns, TrainAsAPlainLoopDoesInTheOrderThatIsRecorded) {
  const JobSpec job = Job(GetParam());
  const TrainingRun run = TrainTurned(job);
  ASSERT_TRUE(run.status().ok()) << run.status();
  EXPECT_EQ(run.bytes_left, 0u);
  const std::vector<StepRecord>& steps = OfServer(run);
  ASSERT_EQ(steps.size(), static_cast<size_t>(kSteps));
  ExpectEachBatchOnce(steps);
  ExpectReference(run);
  EXPECT_LT(steps.back().loss(), steps.front().loss());
  EXPECT_EQ(run.plan.derived().delays_gradients(), GetParam().replicas > 1);
  if (GetParam().mode == "bounded") {
    EXPECT_LE(FurthestAhead(steps, GetParam().replicas),
              run.plan.job().servers().staleness());
  }
}

INSTANTIATE_TEST_SUITE_P(
    Modes, Turns,
    testing::Values(Turned{.mode = "async"},
                    Turned{.mode = "async", .servers = 1, .seed = 3},
                    Turned{.mode = "bounded", .staleness = 0},
                    Turned{.mode = "bounded", .seed = 5, .staleness = 1},
                    Turned{.mode = "bounded", .architecture = "llama"},
                    Turned{.mode = "async", .replicas = 1}));

// With a seed nothing is left to chance: not with other servers, and not over
// another backend.
TEST(TurnsWithASeed, HaveTheSameBits) {
  const TrainingRun first = TrainTurned(Job({.seed = 7}));
  ASSERT_TRUE(first.status().ok()) << first.status();
  EXPECT_GT(ExpectEachBatchOnce(OfServer(first)), 1);
  for (const char* const backend : {"in_process", "shared_memory", "gloo"}) {
    SCOPED_TRACE(backend);
    const TrainingRun run =
        TrainTurned(Job({.servers = backend[0] == 'i' ? 2 : 3, .seed = 7}),
                    {.backend = backend});
    ASSERT_TRUE(run.status().ok()) << run.status();
    ExpectSameBits(run, first);
  }
  const TrainingRun other = TrainTurned(Job({.seed = 8}));
  ASSERT_TRUE(other.status().ok()) << other.status();
  bool differs = false;
  for (int i = 0; i < kSteps; ++i) {
    differs |= OfServer(other)[i].turn().SerializeAsString() !=
               OfServer(first)[i].turn().SerializeAsString();
  }
  EXPECT_TRUE(differs);
}

// One replica's gradients are never late.
TEST(TurnsOfOne, AreASingleRanksTraining) {
  JobSpec job = Job({.replicas = 1});
  job.mutable_training()->set_validate_every(8);
  const TrainingRun run = TrainTurned(job);
  ASSERT_TRUE(run.status().ok()) << run.status();
  JobSpec alone = job;
  alone.clear_servers();
  alone.mutable_parallelism()->set_servers(0);
  ExpectSameSteps(OfServer(run), OneRank(alone).steps[0], 1e-5);
}

// What goes with it: half precision, rules of groups, an average. Matrices that
// are updated whole lie otherwise for other servers, so norms are sums in
// another order.
TEST(TurnsWithMore, HaveTheSameBits) {
  const auto with_more = [](int servers) {
    JobSpec job = Job({.servers = servers, .seed = 2, .architecture = "llama"});
    job.mutable_training()->set_precision("bf16");
    job.mutable_training()->set_steps(8);
    OptimizerGroup& group = *job.mutable_optimizer()->add_groups();
    group.add_match("*.mlp.*.weight");
    group.set_name("muon");
    job.mutable_optimizer()->mutable_ema();
    job.mutable_memory()->mutable_recompute()->set_mode("full");
    return job;
  };
  const TrainingRun one = TrainTurned(with_more(1));
  ASSERT_TRUE(one.status().ok()) << one.status();
  const TrainingRun two = TrainTurned(with_more(2));
  ASSERT_TRUE(two.status().ok()) << two.status();
  ExpectSameBits(TrainTurned(with_more(2)), two);
  for (size_t i = 0; i < OfServer(one).size(); ++i) {
    const StepRecord& step = OfServer(one)[i];
    EXPECT_EQ(step.turn().batch(), OfServer(two)[i].turn().batch());
    EXPECT_NEAR(step.loss(), OfServer(two)[i].loss(), 1e-2 * step.loss());
  }
}

// A mixture of experts delivers what its routers count, too.
TEST(TurnsOfExperts, TellWhatRoutersCount) {
  JobSpec job = Job({.seed = 2, .architecture = "mixtral"});
  job.mutable_training()->set_steps(6);
  const TrainingRun run = TrainTurned(job);
  ASSERT_TRUE(run.status().ok()) << run.status();
  for (const StepRecord& step : OfServer(run)) {
    EXPECT_GE(step.routers().busiest_over_mean(), 1);
  }
  ExpectSameBits(TrainTurned(job), run);
}

// A checkpoint is of the weights after a number of updates, which are those of
// all batches before: with a seed a run that goes on from it has the same bits
// as one that never stopped, and any other plan goes on from it.
TEST(TurnsResume, GoesOnWhereAllAgreed) {
  JobSpec job = Job({.seed = 4});
  job.mutable_checkpoint()->set_every(8);
  job.mutable_training()->set_validate_every(12);
  job.mutable_checkpoint()->set_directory(Directory("turns_whole"));
  const std::string whole =
      CheckpointPath(job.checkpoint().directory(), kSteps);
  const TrainingRun once = TrainTurned(job);
  ASSERT_TRUE(once.status().ok()) << once.status();
  job.mutable_checkpoint()->set_directory(Directory("turns_parts"));
  JobSpec begin = job;
  begin.mutable_training()->set_stop_after(16);
  ASSERT_TRUE(TrainTurned(begin).status().ok());
  const TrainingRun rest = TrainTurned(job, {.resume = "latest"});
  ASSERT_TRUE(rest.status().ok()) << rest.status();
  const StateDifference states = CompareStates(
      CheckpointPath(job.checkpoint().directory(), kSteps), whole);
  EXPECT_EQ(states.weights, 0);
  EXPECT_EQ(states.moments, 0);
  std::set<int64_t> batches;
  for (const StepRecord& step : OfServer(rest)) {
    batches.insert(step.turn().batch());
  }
  EXPECT_EQ(*batches.begin(), 17);
  for (size_t rank = 0; rank < once.steps.size(); ++rank) {
    EXPECT_EQ(once.steps[rank][11].validation_loss(),
              OfServer(once)[11].validation_loss());
  }
  JobSpec other = CutJob(job, {.data = 3});
  other.clear_servers();
  other.mutable_parallelism()->clear_servers();
  other.mutable_training()->set_steps(kSteps + 2);
  EXPECT_TRUE(Train(other, {.ranks = 3, .resume = "latest"}).status().ok());
}

// Whichever rank is asked to stop and save, all do after the same step.
TEST(TurnsStop, AllStopAfterTheSameStep) {
  for (const int asked : {0, 2, 4}) {
    SCOPED_TRACE(asked);
    JobSpec job = Job({});
    job.mutable_training()->set_steps(1000);
    job.mutable_checkpoint()->set_directory(Directory("turns_stop"));
    const TrainingRun run = TrainTurned(
        job, {.on_step = [asked](int rank, const StepRecord& record,
                                 const std::vector<TrainLoop*>& loops) {
          if (rank != asked || record.step() != 5) return;
          loops[rank]->RequestSaveAndStop();
        }});
    std::set<int64_t> ends;
    for (size_t rank = 0; rank < run.steps.size(); ++rank) {
      EXPECT_TRUE(absl::IsCancelled(run.statuses[rank])) << run.statuses[rank];
      ends.insert(run.steps[rank].back().step());
    }
    ASSERT_EQ(ends.size(), 1u);
    EXPECT_LT(*ends.begin(), 1000);
    ExpectEachBatchOnce(OfServer(run));
    ASSERT_EQ(run.checkpoints.size(), 1u);
    EXPECT_EQ(run.checkpoints[0].step(), *ends.begin());
  }
}

// A rank that fails ends the others, which wait for it in no timed call.
TEST(TurnsFail, EndsAllRanks) {
  const TrainingRun run = TrainTurned(
      Job({}), {.on_step = [](int rank, const StepRecord& record,
                              const std::vector<TrainLoop*>& loops) {
        if (rank != 1 || record.step() != 6) return;
        loops[rank]->Abort(absl::InternalError("the machine is gone"));
      }});
  for (const absl::Status& status : run.statuses) EXPECT_FALSE(status.ok());
}

// Replicas of which one is held to a fifth of the others' speed: units that
// take a given time and no processor, so that it is not the machine's cores
// that are measured.
JobSpec SlowJob(const std::string& mode, int replicas) {
  JobSpec job;
  job.set_name("slow");
  ModelSpec& model = *job.mutable_model();
  model.set_architecture("synthetic");
  model.set_units(2);
  model.add_forward_us(12000);
  for (int u = 0; u < 2; ++u) {
    model.add_activation_bytes(64);
    model.add_parameter_bytes(4096);
  }
  TrainingSpec& training = *job.mutable_training();
  training.set_steps(mode == "sync" ? 6 : 60);
  training.set_micro_batch_size(1);
  training.set_global_batch_size(mode == "sync" ? replicas : 1);
  job.mutable_optimizer()->set_name("adamw");
  job.mutable_optimizer()->set_lr(1e-3);
  job = CutJob(job, {.data = replicas});
  job.mutable_parallelism()->set_servers(1);
  job.mutable_servers()->set_mode(mode);
  return job;
}

// What the first server says of a run whose replica 0 is slow.
std::vector<StepRecord> StepsWithASlowReplica(const JobSpec& job) {
  const TrainingRun run = TrainTurned(
      job, {.build_units = [](const Plan& plan, int rank)
                -> absl::StatusOr<std::vector<std::unique_ptr<ModelUnit>>> {
        Plan slow = plan;
        for (Unit& unit : *slow.mutable_units()) {
          for (Work* const work :
               {unit.mutable_forward(), unit.mutable_backward_input(),
                unit.mutable_backward_weight()}) {
            if (rank == 0) work->set_wait_seconds(5 * work->wait_seconds());
          }
        }
        return BuildUnits(slow, rank);
      }});
  EXPECT_TRUE(run.status().ok()) << run.status();
  return OfServer(run);
}

// Gradients of one micro-batch each that the servers have taken, in a second.
double GradientsPerSecond(const JobSpec& job,
                          const std::vector<StepRecord>& steps) {
  // The first steps load what is loaded once; all wait for the last ones.
  const size_t ends = steps.size() / 6;
  double seconds = 0;
  double samples = 0;
  for (size_t i = ends; i + ends < steps.size(); ++i) {
    seconds += steps[i].step_seconds();
    samples += job.training().global_batch_size();
  }
  return samples / seconds;
}

double TurnsOf(int replica, const std::vector<StepRecord>& steps) {
  return static_cast<double>(
      absl::c_count_if(steps, [replica](const StepRecord& step) {
        return step.turn().replica() == replica;
      }));
}

TEST(TurnsSpeed, OthersDoNotWaitForASlowReplica) {
  constexpr int kReplicas = 4;
  const auto rate = [](const std::string& mode,
                       std::vector<StepRecord>& steps) {
    const JobSpec job = SlowJob(mode, kReplicas);
    steps = StepsWithASlowReplica(job);
    return GradientsPerSecond(job, steps);
  };
  std::vector<StepRecord> of_sync, of_async;
  const double sync = rate("sync", of_sync);
  const double async = rate("async", of_async);
  const double ratio = async / sync;
  RecordProperty("async_over_sync", absl::StrCat(ratio));
  printf(
      "gradients a second with one of %d replicas at a fifth: sync %.0f, "
      "async %.0f, %.2f times\n",
      kReplicas, sync, async, ratio);
  for (int replica = 1; replica < kReplicas; ++replica) {
    EXPECT_GT(TurnsOf(replica, of_async), TurnsOf(0, of_async)) << replica;
  }
}

}  // namespace
}  // namespace troupe
