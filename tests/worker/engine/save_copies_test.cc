#include "worker/engine/save_copies.h"

#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "proto/base/check.h"
#include "proto/plan/model.h"
#include "storage/checkpoint/checkpoint_dir.h"
#include "storage/checkpoint/manifest.h"
#include "storage/engine/make_engine.h"
#include "tests/equivalence/small_job.h"
#include "tests/worker/rank/small_rank.h"
#include "worker/engine/recover.h"
#include "worker/rank/initial_state.h"

namespace troupe {
namespace {

constexpr int64_t kStep = 6;
constexpr int kMoments = 2;

// Of two ranks, what each has in memory when it has ended.
class SaveCopiesTest : public testing::TestWithParam<int> {
 protected:
  SaveCopiesTest()
      : directory_(testing::TempDir() + "/save_copies"),
        io_(MakeIoEngine({.kind = "thread_pool", .depth = 4}).value()) {
    std::filesystem::remove_all(directory_);
    JobSpec job = SmallJob();
    job.mutable_parallelism()->set_zero(GetParam());
    job.mutable_checkpoint()->set_directory(directory_);
    job.mutable_checkpoint()->set_keep(1);
    job.mutable_recovery();
    for (int rank = 0; rank < 2; ++rank) {
      ranks_.push_back(std::make_unique<SmallRank>(
          job, SmallRankOptions{
                   .ranks = 2, .rank = rank, .program = Program::KEEP}));
      Train(*ranks_[rank]);
      kept_.push_back(Kept(*ranks_[rank]));
    }
  }

  // Moments that tell their places in the model.
  static float Moment(int unit, int moment, int64_t element) {
    return static_cast<float>(unit * 1000 + moment * 500 + element % 499);
  }
  static void Train(SmallRank& rank) {
    RankState& state = rank.state();
    for (const int unit : state.HeldUnits()) {
      auto* moments = reinterpret_cast<float*>(
          state.MemoryOfUnit(unit).optimizer_state.memory());
      const Range rests = state.AtRest(unit);
      for (int m = 0; m < kMoments; ++m) {
        for (int64_t e = rests.begin; e < rests.end; ++e) {
          moments[m * rests.size() + e - rests.begin] = Moment(unit, m, e);
        }
      }
    }
  }
  static KeptMemory Kept(SmallRank& rank) {
    RankState& state = rank.state();
    state.step.step = state.copies.Begin(kStep);
    CHECK_OK(rank.RunAll("H"));
    state.copies.End(state.step.step, KeptStateOf(kStep, 48, state.loss_scale),
                     /*of_peer=*/true);
    return state.TakeKept();
  }
  RankResources Resources(int rank) {
    return {.device = ranks_[rank]->state().device,
            .arenas = ranks_[rank]->arenas(),
            .io = *io_,
            .clock = clock_};
  }
  static SaveCopies Request(int64_t step) {
    SaveCopies request;
    request.mutable_ref()->set_job(3);
    request.mutable_ref()->set_attempt(2);
    request.mutable_state()->set_step(step);
    request.mutable_state()->set_samples_consumed(48);
    request.set_token("job-3-2-1");
    request.set_ran_before(true);
    return request;
  }
  // The state of rank `of`, by the worker of rank `by`.
  absl::StatusOr<std::string> Write(int by, int of, bool peer,
                                    int64_t step = kStep) {
    const Plan& plan = *ranks_[of]->state().plan;
    CopyToSave copy;
    *copy.mutable_plan() = plan;
    copy.set_peer(peer);
    absl::StatusOr<ShardFile> file =
        WriteCopy(copy, CopiesAttempt(plan.job(), Request(step)), kept_[by],
                  Resources(by), disk_);
    if (!file.ok()) return file.status();
    return FormatShardFile(*file);
  }
  absl::StatusOr<CheckpointRecord> Commit(
      const std::vector<std::string>& shards) {
    SaveCopies request = Request(kStep);
    *request.mutable_commits() = *ranks_[0]->state().plan;
    request.mutable_shards()->Assign(shards.begin(), shards.end());
    return CommitCopies(request, clock_, disk_);
  }
  // That a rank alone, which resumes, has what the two had.
  void ExpectAllIsThere(const std::string& path) {
    SmallRank one(SmallJob(), {});
    SmallRank other(SmallJob(), {});  // with the weights of the seed
    RankState& state = one.state();
    for (const int unit : state.HeldUnits()) {
      std::memset(one.Memory<char>(Buffer::PARAMETERS, unit), 1,
                  state.AtRest(unit).size() * sizeof(float));
    }
    const auto position =
        RestoreFromCheckpoint(path, RankDisk{*io_, disk_}, state);
    ASSERT_TRUE(position.ok()) << position.status();
    EXPECT_EQ(position->step, kStep);
    EXPECT_EQ(position->samples_consumed, 48);
    for (const int unit : state.HeldUnits()) {
      const int64_t count = state.AtRest(unit).size();
      const auto* weights = one.Memory<float>(Buffer::PARAMETERS, unit);
      const auto* moments = one.Memory<float>(Buffer::OPTIMIZER_STATE, unit);
      for (const Parameter& parameter : state.plan->units(unit).parameters()) {
        const int64_t end = parameter.offset() + ElementsOf(parameter);
        for (int64_t e = parameter.offset(); e < end; ++e) {
          ASSERT_EQ(weights[e],
                    other.Memory<float>(Buffer::PARAMETERS, unit)[e]);
          for (int m = 0; m < kMoments; ++m) {
            ASSERT_EQ(moments[m * count + e], Moment(unit, m, e));
          }
        }
      }
    }
  }

  const std::string directory_;
  const RealClock clock_;
  DiskLog disk_{clock_};
  const std::unique_ptr<IoEngine> io_;
  std::vector<std::unique_ptr<SmallRank>> ranks_;
  std::vector<KeptMemory> kept_;
};

TEST_P(SaveCopiesTest, EachWritesItsOwn) {
  const auto first = Write(0, 0, false);
  const auto second = Write(1, 1, false);
  ASSERT_TRUE(first.ok() && second.ok()) << first.status() << second.status();
  const auto record = Commit({*first, *second});
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_EQ(record->path(), CheckpointPath(directory_, kStep));
  ExpectAllIsThere(record->path());
  const auto manifest = ReadManifest(record->path());
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  EXPECT_EQ(manifest->tokenizer, "bytes");
  EXPECT_NE(manifest->data, "");
  EXPECT_FALSE(manifest->data_unchecked);
}

TEST_P(SaveCopiesTest, OneWritesForAnotherThatIsLost) {
  const bool mirrored = GetParam() > 0;
  if (mirrored) {  // as MIRROR does
    for (int i = 0; i < StateCopies::kCount; ++i) {
      std::memcpy(kept_[0].of_peer[i], kept_[1].own[i],
                  kept_[1].own[1] - kept_[1].own[0]);
    }
  } else {
    EXPECT_EQ(kept_[0].of_peer[0], nullptr) << "they hold the same";
  }
  const auto first = Write(0, 0, false);
  const auto second = Write(0, 1, mirrored);
  ASSERT_TRUE(first.ok() && second.ok()) << first.status() << second.status();
  const auto record = Commit({*first, *second});
  ASSERT_TRUE(record.ok()) << record.status();
  ExpectAllIsThere(record->path());
}

TEST_P(SaveCopiesTest, SaysWhoseTokensWereNotCheckedToTheEnd) {
  kept_[1].data_unchecked = true;
  const auto first = Write(0, 0, false);
  const auto second = Write(1, 1, false);
  ASSERT_TRUE(first.ok() && second.ok()) << first.status() << second.status();
  ASSERT_TRUE(Commit({*first, *second}).ok());
  EXPECT_TRUE(ReadManifest(CheckpointPath(directory_, kStep))->data_unchecked);
}

// The job keeps one: what was there is obsolete.
TEST_P(SaveCopiesTest, OlderOnesAreRemovedAsTheJobSays) {
  ASSERT_TRUE(Commit({*Write(0, 0, false), *Write(1, 1, false)}).ok());
  const std::string older = CheckpointPath(directory_, kStep - 1);
  std::filesystem::rename(CheckpointPath(directory_, kStep), older);
  ASSERT_TRUE(Commit({*Write(0, 0, false), *Write(1, 1, false)}).ok());
  EXPECT_FALSE(std::filesystem::exists(older));
  EXPECT_TRUE(std::filesystem::exists(CheckpointPath(directory_, kStep)));
}

TEST_P(SaveCopiesTest, IsNoCheckpointWhereOneIsMissing) {
  const auto first = Write(0, 0, false);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_FALSE(Commit({*first}).ok());
  EXPECT_FALSE(std::filesystem::exists(CheckpointPath(directory_, kStep)));
}

TEST_P(SaveCopiesTest, SaysThatItHasNoCopyOfTheStep) {
  const auto written = Write(0, 0, false, kStep + 1);
  EXPECT_EQ(written.status().message(),
            "the copy of the state of rank 0 after step 7 is not in memory");
}

INSTANTIATE_TEST_SUITE_P(Zero, SaveCopiesTest, testing::Values(0, 3));

}  // namespace
}  // namespace troupe
