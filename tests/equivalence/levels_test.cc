// Exchanges within hosts and then between them train the model that one rank
// trains, and a run repeats the bits of the run before.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "proto/plan/ways.h"
#include "scheduler/planner/choose_backends.h"
#include "tests/equivalence/cluster_of_threads.h"
#include "tests/equivalence/same_training.h"
#include "tests/equivalence/small_job.h"
#include "tests/equivalence/tensor_job.h"

namespace troupe {
namespace {

struct LevelsCase {
  int ranks = 4;
  int on_host = 2;
  int zero = 0;
  std::string row = "two_level";
};

class Levels : public testing::TestWithParam<LevelsCase> {};

JobSpec JobOver(const LevelsCase& options) {
  JobSpec job = WithFewSteps(SmallJob());
  job.mutable_parallelism()->set_data(options.ranks);
  job.mutable_parallelism()->set_zero(options.zero);
  job.mutable_parallelism()->set_bucket_megabytes(0.02);
  job.mutable_training()->set_micro_batch_size(1);
  CommunicationSpec& communication = *job.mutable_communication();
  communication.set_all_reduce(options.row);
  if (options.row == "tree") return job;  // sums only
  communication.set_reduce_scatter(options.row);
  communication.set_all_gather(options.row);
  return job;
}

// More pieces than would help such small buffers.
void CutIntoPieces(Plan& plan) {
  for (Group& group : *plan.mutable_groups()) {
    for (Group::Way& way : *group.mutable_ways()) {
      if (way.row() == "blueconnect") way.set_pieces(3);
    }
  }
}

TrainingRun TrainOver(const LevelsCase& options, const char* backend) {
  return Train(JobOver(options), {.ranks = options.ranks,
                                  .ranks_on_host = options.on_host,
                                  .backend = backend,
                                  .change_plan = CutIntoPieces});
}

// Collectives that go over levels, in any group.
std::vector<Collective> WithLevels(const Plan& plan) {
  std::vector<Collective> collectives;
  for (const Group& group : plan.groups()) {
    for (const Group::Way& way : group.ways()) {
      if (!way.steps().empty()) collectives.push_back(way.collective());
    }
  }
  return collectives;
}

bool Has(const std::vector<Collective>& all, Collective one) {
  return std::count(all.begin(), all.end(), one) > 0;
}

void ExpectSameBits(const TrainingRun& a, const TrainingRun& b) {
  ASSERT_TRUE(a.status().ok()) << a.status();
  ASSERT_TRUE(b.status().ok()) << b.status();
  ASSERT_EQ(a.steps[0].size(), b.steps[0].size());
  for (size_t rank = 0; rank < a.steps.size(); ++rank) {
    for (size_t s = 0; s < a.steps[rank].size(); ++s) {
      EXPECT_EQ(a.steps[rank][s].loss(), b.steps[0][s].loss()) << s;
      EXPECT_EQ(a.steps[rank][s].grad_norm(), b.steps[0][s].grad_norm()) << s;
    }
  }
}

TEST_P(Levels, TrainTheSameModelInTheSameBitsEachTime) {
  const TrainingRun run = TrainOver(GetParam(), "in_process");
  const std::vector<Collective> with_levels = WithLevels(run.plan);
  if (GetParam().zero == 0) {
    EXPECT_TRUE(Has(with_levels, ALL_REDUCE));
  } else {
    EXPECT_TRUE(Has(with_levels, REDUCE_SCATTER));
    EXPECT_TRUE(Has(with_levels, ALL_GATHER));
  }
  ExpectSameTraining(run, OneRank(WithFewSteps(SmallJob())), kRelativeError);
  ExpectSameBits(run, TrainOver(GetParam(), "in_process"));
}

INSTANTIATE_TEST_SUITE_P(
    Hosts, Levels,
    testing::Values(LevelsCase{}, LevelsCase{.zero = 1}, LevelsCase{.zero = 2},
                    LevelsCase{.zero = 3}, LevelsCase{.ranks = 8, .on_host = 4},
                    LevelsCase{.ranks = 8, .on_host = 2, .zero = 3},
                    LevelsCase{.row = "blueconnect"},
                    LevelsCase{.zero = 3, .row = "blueconnect"},
                    LevelsCase{.ranks = 8, .on_host = 4, .row = "blueconnect"},
                    LevelsCase{.ranks = 4, .on_host = 1, .row = "halving"},
                    LevelsCase{
                        .ranks = 4, .on_host = 1, .zero = 3, .row = "halving"},
                    LevelsCase{.ranks = 4, .on_host = 1, .row = "tree"}),
    [](const testing::TestParamInfo<LevelsCase>& info) {
      return absl::StrCat("Ranks", info.param.ranks, "On", info.param.on_host,
                          "Zero", info.param.zero, "_", info.param.row);
    });

// Sums within units are taken in another order, too (context_test.cc): gradient
// norms differ by more roundings.
const Tolerance kInUnits(1e-5, 1e-4);

// What heads and tokens exchange goes within hosts first, with other members of
// a host, and then between them.
TEST(LevelsOfAJob, AllToAllsTrainTheSameModel) {
  const JobSpec whole = WithFewSteps(TensorJob({}));
  JobSpec job = CutJob(whole, JobCut{.context = 4});
  for (const char* row : {"two_level", "blueconnect", "halving"}) {
    job.mutable_communication()->set_all_to_all(row);
    const TrainingRun run = Train(job, {.ranks = 4,
                                        .ranks_on_host = 2,
                                        .backend = "in_process",
                                        .change_plan = CutIntoPieces});
    EXPECT_TRUE(Has(WithLevels(run.plan), ALL_TO_ALL)) << row;
    ExpectSameTraining(run, OneRank(whole), kInUnits);
  }
}

// A worker of another host takes a lost one's place: the way stays, and the
// bits.
TEST(LevelsOfAJob, StayWhenARankMoves) {
  const LevelsCase options;
  const TrainingRun before = TrainOver(options, "in_process");
  const TrainingRun after =
      Train(JobOver(options),
            {.ranks = options.ranks,
             .ranks_on_host = options.on_host,
             .change_plan = [](Plan& plan) {
               std::vector<WorkerDescription> moved(4);
               for (const int rank : {0, 1, 2}) {
                 moved[rank].set_host(absl::StrCat("host-", rank / 2));
                 moved[rank].set_memory_domain(moved[rank].host());
               }
               moved[3].set_host("host-2");
               moved[3].set_memory_domain("host-2");
               for (Group& group : *plan.mutable_groups())
                 group.clear_carriers();
               ChooseBackends(moved, plan.mesh(), *plan.mutable_groups());
             }});
  EXPECT_TRUE(Has(WithLevels(after.plan), ALL_REDUCE));
  ExpectSameBits(before, after);
}

}  // namespace
}  // namespace troupe
