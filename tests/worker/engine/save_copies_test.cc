#include "worker/engine/save_copies.h"

#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "proto/plan/model.h"
#include "storage/checkpoint/checkpoint_dir.h"
#include "storage/checkpoint/manifest.h"
#include "tests/equivalence/small_job.h"
#include "tests/worker/engine/kept_ranks.h"
#include "tests/worker/rank/small_rank.h"
#include "worker/engine/recover.h"
#include "worker/rank/initial_state.h"

namespace troupe {
namespace {

constexpr int64_t kStep = KeptRanks::kStep;

class SaveCopiesTest : public testing::TestWithParam<int> {
 protected:
  SaveCopiesTest() : directory_(testing::TempDir() + "/save_copies") {
    std::filesystem::remove_all(directory_);
  }

  // The state of rank `of`, by the worker of rank `by`.
  absl::StatusOr<std::string> Write(int by, int of, bool peer,
                                    int64_t step = kStep) {
    absl::StatusOr<ShardFile> file = WriteCopy(
        ranks_.CopyOf(of, peer),
        CopiesAttempt(ranks_.plan(of).job(), KeptRanks::Request(step)),
        ranks_.kept(by), ranks_.Resources(by), ranks_.disk());
    if (!file.ok()) return file.status();
    return FormatShardFile(*file);
  }
  absl::StatusOr<CheckpointRecord> Commit(
      const std::vector<std::string>& shards) {
    SaveCopies request = KeptRanks::Request();
    *request.mutable_commits() = ranks_.plan(0);
    request.mutable_shards()->Assign(shards.begin(), shards.end());
    return CommitCopies(request, ranks_.clock());
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
    const auto position = RestoreFromCheckpoint(
        path, RankDisk{ranks_.io(), ranks_.disk()}, state);
    ASSERT_TRUE(position.ok()) << position.status();
    EXPECT_EQ(position->step, kStep);
    EXPECT_EQ(position->samples_consumed, KeptRanks::kSamples);
    for (const int unit : state.HeldUnits()) {
      const int64_t count = state.AtRest(unit).size();
      const auto* weights = one.Memory<float>(Buffer::PARAMETERS, unit);
      const auto* moments = one.Memory<float>(Buffer::OPTIMIZER_STATE, unit);
      for (const Parameter& parameter : state.plan->units(unit).parameters()) {
        const int64_t end = parameter.offset() + ElementsOf(parameter);
        for (int64_t e = parameter.offset(); e < end; ++e) {
          ASSERT_EQ(weights[e],
                    other.Memory<float>(Buffer::PARAMETERS, unit)[e]);
          for (int m = 0; m < KeptRanks::kMoments; ++m) {
            ASSERT_EQ(moments[m * count + e], KeptRanks::Moment(unit, m, e));
          }
        }
      }
    }
  }

  const std::string directory_;
  KeptRanks ranks_{directory_, GetParam()};
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
      std::memcpy(ranks_.kept(0).of_peer[i], ranks_.kept(1).own[i],
                  ranks_.kept(1).own[1] - ranks_.kept(1).own[0]);
    }
  } else {
    EXPECT_EQ(ranks_.kept(0).of_peer[0], nullptr) << "they hold the same";
  }
  const auto first = Write(0, 0, false);
  const auto second = Write(0, 1, mirrored);
  ASSERT_TRUE(first.ok() && second.ok()) << first.status() << second.status();
  const auto record = Commit({*first, *second});
  ASSERT_TRUE(record.ok()) << record.status();
  ExpectAllIsThere(record->path());
}

TEST_P(SaveCopiesTest, SaysWhoseTokensWereNotCheckedToTheEnd) {
  ranks_.kept(1).data_unchecked = true;
  const auto first = Write(0, 0, false);
  const auto second = Write(1, 1, false);
  ASSERT_TRUE(first.ok() && second.ok()) << first.status() << second.status();
  ASSERT_TRUE(Commit({*first, *second}).ok());
  EXPECT_TRUE(ReadManifest(CheckpointPath(directory_, kStep))->data_unchecked);
}

// Though the job keeps one: no scheduler may ever hear of the new one.
TEST_P(SaveCopiesTest, TheOneBeforeStays) {
  ASSERT_TRUE(Commit({*Write(0, 0, false), *Write(1, 1, false)}).ok());
  const std::string older = CheckpointPath(directory_, kStep - 1);
  std::filesystem::rename(CheckpointPath(directory_, kStep), older);
  ASSERT_TRUE(Commit({*Write(0, 0, false), *Write(1, 1, false)}).ok());
  EXPECT_TRUE(std::filesystem::exists(older));
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
