#include "worker/engine/save_copies.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "proto/base/check.h"
#include "proto/plan/model.h"
#include "storage/checkpoint/checkpoint_dir.h"
#include "storage/checkpoint/manifest.h"
#include "tests/equivalence/small_job.h"
#include "tests/worker/engine/kept_ranks.h"
#include "tests/worker/rank/small_rank.h"
#include "worker/engine/rank_shard.h"
#include "worker/engine/recover.h"
#include "worker/rank/initial_state.h"
#include "worker/rank/unit_state.h"

namespace troupe {
namespace {

constexpr int64_t kStep = KeptRanks::kStep;

class SaveCopiesTest : public testing::TestWithParam<int> {
 protected:
  SaveCopiesTest() : directory_(testing::TempDir() + "/save_copies") {
    std::filesystem::remove_all(directory_);
  }

  // The state of rank `of`, by the worker of rank `by`.
  absl::StatusOr<ShardRecord> Write(int by, int of, bool peer,
                                    int64_t step = kStep) {
    return WriteCopy(
        ranks_.CopyOf(of, peer),
        CopiesAttempt(ranks_.plan(of).job(), KeptRanks::Request(step)),
        ranks_.kept(by), ranks_.Resources(by), ranks_.disk());
  }
  absl::StatusOr<CheckpointRecord> Commit(
      const std::vector<ShardRecord>& shards) {
    SaveCopies request = KeptRanks::Request();
    *request.mutable_commits() = ranks_.plan(0);
    request.mutable_shard_records()->Assign(shards.begin(), shards.end());
    return CommitCopies(request, ranks_.clock());
  }
  // That a rank alone, which resumes, has what the two had.
  void ExpectAllIsThere(const std::string& path) {
    SmallRank one(SmallJob(), {});
    SmallRank other(SmallJob(), {});  // with the weights of the seed
    RankState& state = one.state();
    for (const int unit : state.HeldUnits()) {
      std::memset(one.Memory<char>(Buffer::PARAMETERS, unit), 1,
                  state.AtRest(unit).front().rests.size() * sizeof(float));
    }
    const auto position = RestoreFromCheckpoint(
        path, RankDisk{ranks_.io(), ranks_.disk()}, state);
    ASSERT_TRUE(position.ok()) << position.status();
    EXPECT_EQ(position->step, kStep);
    EXPECT_EQ(position->samples_consumed, KeptRanks::kSamples);
    for (const int unit : state.HeldUnits()) {
      const int64_t count = state.AtRest(unit).front().rests.size();
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

// The files and the manifest of a checkpoint, but for the time in it.
std::map<std::string, std::string> ContentOf(const std::string& checkpoint) {
  std::map<std::string, std::string> content;
  for (const auto& entry : std::filesystem::directory_iterator(checkpoint)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream file(entry.path(), std::ios::binary);
    content[entry.path().filename()] = {std::istreambuf_iterator<char>(file),
                                        {}};
  }
  absl::StatusOr<Manifest> manifest = ReadManifest(checkpoint);
  EXPECT_TRUE(manifest.ok()) << manifest.status();
  if (!manifest.ok()) return content;
  manifest->created = absl::UnixEpoch();
  content[std::string(kManifestFile)] = FormatManifest(*manifest);
  return content;
}

// As the ranks themselves save at the end of the step.
std::string SaveAsUsual(KeptRanks& ranks) {
  const SaveCopies request = KeptRanks::Request();
  const JobSpec& job = ranks.plan(0).job();
  const CheckpointAttempt attempt = {
      .dir = job.checkpoint().directory(), .step = kStep, .token = "usual"};
  std::vector<ShardRecord> shards;
  for (int r = 0; r < 2; ++r) {
    RankState& state = ranks.rank(r).state();
    state.snapshot.clear();
    ranks.rank(r).Choose(Program::CHECKPOINT);
    CHECK_OK(ranks.rank(r).RunAll("K"));
    TierPort port(state.device, &state.memory, &state.disk);
    const auto file = WriteRankShard(attempt, {.rank = r}, state.snapshot, port,
                                     RankDisk{ranks.io(), ranks.disk()});
    CHECK(file.ok()) << file.status();
    shards.push_back(*file);
  }
  const RankState& state = ranks.rank(0).state();
  const auto record =
      CommitShards(attempt, ranks.plan(0),
                   {.run_id = request.run_id(),
                    .samples_consumed = request.state().samples_consumed(),
                    .tokenizer = state.tokenizer(),
                    .data = state.DataIdentity()},
                   shards, {}, nullptr);
  CHECK(record.ok()) << record.status();
  return record->path();
}

std::string SaveFromCopies(KeptRanks& ranks) {
  SaveCopies request = KeptRanks::Request();
  *request.mutable_commits() = ranks.plan(0);
  for (int r = 0; r < 2; ++r) {
    const auto file =
        WriteCopy(ranks.CopyOf(r, /*peer=*/false),
                  CopiesAttempt(ranks.plan(r).job(), request), ranks.kept(r),
                  ranks.Resources(r), ranks.disk());
    CHECK(file.ok()) << file.status();
    *request.add_shard_records() = *file;
  }
  const auto record = CommitCopies(request, ranks.clock());
  CHECK(record.ok()) << record.status();
  return record->path();
}

// As a rank that goes on from its copy: all that rests in it is set anew.
void RestoreFromCopies(KeptRanks& ranks) {
  for (int r = 0; r < 2; ++r) {
    RankState& state = ranks.rank(r).state();
    for (const int unit : state.HeldUnits()) {
      for (const UnitFlatBuffers& memory : state.StateOfUnit(unit)) {
        std::memset(memory.parameters.memory(), 1,
                    memory.holds->size() * DTypeBytes(memory.parameters_type));
      }
    }
    const KeptMemory& kept = ranks.kept(r);
    const int index = kept.copies.Find(kStep, /*of_peer=*/false);
    CHECK_OK(RestoreFromCopy(kept.own[index], state));
  }
}

JobSpec JobWith(const std::string& optimizer, const std::string& precision,
                int zero, bool frozen) {
  JobSpec job = SmallJob();
  if (optimizer == "groups") {
    // Two states, one and none, within each block.
    for (const char* const match : {"*.mlp.*", "*bias"}) {
      OptimizerGroup& group = *job.mutable_optimizer()->add_groups();
      group.add_match(match);
      group.set_name(match == std::string("*bias") ? "sgd" : "lion");
    }
  } else if (optimizer == "muon") {  // beside AdamW, which has the vectors
    OptimizerGroup& group = *job.mutable_optimizer()->add_groups();
    group.add_match("*.mlp.*.weight");
    group.set_name("muon");
  } else if (absl::StartsWith(optimizer, "adafactor")) {
    OptimizerSpec& adafactor = *job.mutable_optimizer();
    adafactor.Clear();
    adafactor.set_name("adafactor");
    adafactor.set_lr(0.01);
    if (optimizer != "adafactor") adafactor.mutable_ema()->set_decay(0.99);
    OptimizerGroup& group = *adafactor.add_groups();
    group.add_match("*.attn.*");
    group.set_name("adamw");
  } else if (optimizer == "adamw with ema") {
    job.mutable_optimizer()->mutable_ema()->set_decay(0.99);
  } else if (optimizer != "adamw") {
    OptimizerSpec& sgd = *job.mutable_optimizer();
    sgd.Clear();
    sgd.set_name("sgd");
    sgd.set_lr(0.01);
    if (optimizer != "sgd") sgd.set_momentum(0.9);
  }
  job.mutable_training()->set_precision(precision);
  job.mutable_parallelism()->set_zero(zero);
  if (frozen) {
    job.mutable_training()->add_freeze("*.h.0.*");
    job.mutable_training()->add_freeze("*bias");
  }
  return job;
}

// Files of a checkpoint that is then removed.
auto TakeContent(const std::string& checkpoint) {
  auto files = ContentOf(checkpoint);
  std::filesystem::remove_all(checkpoint);
  return files;
}

// Attention is dealt over both ranks, and each has experts of its own.
TEST(SaveCopies, SavesPartsThatAreDealtOverOthers) {
  const std::string directory = testing::TempDir() + "/save_copies_experts";
  for (const char* precision : {"f32", "bf16"}) {
    for (const int zero : {0, 1, 2, 3}) {
      for (const char* const frozen : {"", "*norm*", "*.experts.*"}) {
        SCOPED_TRACE(absl::StrCat(precision, ", zero ", zero, ", ", frozen));
        JobSpec job = SmallJobOf("mixtral");
        job.mutable_training()->set_precision(precision);
        job.mutable_parallelism()->set_zero(zero);
        job.mutable_parallelism()->set_expert(2);
        if (*frozen != '\0') job.mutable_training()->add_freeze(frozen);
        std::filesystem::remove_all(directory);
        KeptRanks ranks(directory, job);
        const auto want = TakeContent(SaveAsUsual(ranks));
        EXPECT_TRUE(TakeContent(SaveFromCopies(ranks)) == want);
        RestoreFromCopies(ranks);
        EXPECT_TRUE(TakeContent(SaveAsUsual(ranks)) == want);
      }
    }
  }
}

// Every state that an optimizer has, and none that it has not.
TEST(SaveCopies, SavesToTheBitWhatTheRanksThemselvesSave) {
  const std::string directory = testing::TempDir() + "/save_copies_alike";
  for (const char* optimizer :
       {"adafactor", "adafactor with ema", "adamw", "adamw with ema", "groups",
        "muon", "sgd with momentum", "sgd"}) {
    for (const char* precision : {"f32", "bf16", "fp16"}) {
      for (const int zero : {0, 1, 2, 3}) {
        for (const bool frozen : {false, true}) {
          const bool sgd = absl::StartsWith(optimizer, "sgd");
          if (frozen && sgd) continue;
          SCOPED_TRACE(absl::StrCat(optimizer, ", ", precision, ", zero ", zero,
                                    frozen ? ", frozen" : ""));
          std::filesystem::remove_all(directory);
          KeptRanks ranks(directory,
                          JobWith(optimizer, precision, zero, frozen));
          const auto want = TakeContent(SaveAsUsual(ranks));
          EXPECT_TRUE(TakeContent(SaveFromCopies(ranks)) == want);
          if (sgd) continue;
          RestoreFromCopies(ranks);
          EXPECT_TRUE(TakeContent(SaveAsUsual(ranks)) == want);
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Zero, SaveCopiesTest, testing::Values(0, 3));

}  // namespace
}  // namespace troupe
