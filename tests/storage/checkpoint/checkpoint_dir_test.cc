#include "storage/checkpoint/checkpoint_dir.h"

#include <filesystem>

#include "gtest/gtest.h"
#include "storage/disk/directory.h"
#include "tests/storage/checkpoint/small_checkpoint.h"
#include "tests/storage/temp_dir.h"

namespace troupe {
namespace {

namespace fs = std::filesystem;

std::vector<int64_t> Steps(const std::string& dir) {
  std::vector<int64_t> steps;
  const auto entries = ListCheckpoints(dir);
  for (const CheckpointEntry& entry : *entries) {
    steps.push_back(entry.step);
  }
  return steps;
}

TEST(CheckpointDir, ListsOnlyCommittedNamesInOrder) {
  TempDir dir;
  for (const char* name : {"step-00000100", "step-00000020", "step-123456789",
                           "step-00000030.tmp-x", "step-5", "step-00000040.old",
                           "stepping", "step-0000004x"}) {
    fs::create_directory(dir.File(name));
  }
  EXPECT_EQ(Steps(dir.path()), (std::vector<int64_t>{20, 100, 123456789}));
  EXPECT_TRUE(Steps(dir.File("missing")).empty());
  EXPECT_EQ(CheckpointPath("d", 123456789), "d/step-123456789");
}

TEST(CheckpointDir, PreparesAFolderOrSaysWhyNot) {
  TempDir dir;
  EXPECT_TRUE(PrepareCheckpointDirectory(dir.File("a/b")).ok());
  EXPECT_TRUE(fs::is_empty(dir.File("a/b")));
  EXPECT_FALSE(PrepareCheckpointDirectory("/proc/none").ok());
  EXPECT_FALSE(PrepareCheckpointDirectory("/proc").ok());
}

TEST(CheckpointDir, OneThatIsGoneIsAnsweredWithTheNewestThatIsThere) {
  TempDir dir;
  const std::string first = dir.File("step-00000010");
  EXPECT_TRUE(Fails(
      ReadCheckpoint(first).status(), absl::StatusCode::kNotFound,
      {first + "/manifest.json is missing", "none lies beside it, either"}));
  for (const int64_t step : {20, 30}) SaveSmall({dir.path(), step, "a"}, 2);
  EXPECT_EQ(ReadCheckpoint(dir.File("step-00000020"))->step, 20);
  for (const std::string& path : {first, first + "/", dir.path()}) {
    EXPECT_TRUE(Fails(ReadCheckpoint(path).status(),
                      absl::StatusCode::kNotFound,
                      {"/manifest.json is missing",
                       "step-00000030, the newest beside it",
                       "checkpoint.keep"}));
  }
  // Never the one that was asked for.
  const std::string last = dir.File("step-00000030");
  fs::remove(last + "/manifest.json");
  EXPECT_TRUE(Fails(ReadCheckpoint(last).status(), absl::StatusCode::kNotFound,
                    {"step-00000020, the newest beside it"}));
}

TEST(CheckpointDir, TheNewestCompleteOneWins) {
  TempDir dir;
  EXPECT_TRUE(Fails(FindNewestComplete(dir.path()).status(),
                    absl::StatusCode::kNotFound, {dir.path()}));
  for (const int64_t step : {10, 20, 30, 40, 50}) {
    SaveSmall({dir.path(), step, "a"}, 2);
  }
  BeginCheckpoint({dir.path(), 60, "torn"}).IgnoreError();
  EXPECT_EQ(FindNewestComplete(dir.path())->step, 50);

  // Torn in every way, from the newest on.
  fs::remove(dir.File("step-00000050/manifest.json"));
  EXPECT_EQ(FindNewestComplete(dir.path())->step, 40);
  fs::remove(dir.File("step-00000040/rank-00001.safetensors"));
  EXPECT_EQ(FindNewestComplete(dir.path())->step, 30);
  const std::string manifest = dir.File("step-00000030/manifest.json");
  WriteText(manifest, ReadText(manifest).substr(0, 200));
  EXPECT_EQ(FindNewestComplete(dir.path())->step, 20);
  const std::string shard = dir.File("step-00000020/rank-00000.safetensors");
  std::string bytes = ReadText(shard);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  WriteText(shard, bytes);  // the size stays, the content does not
  EXPECT_EQ(FindNewestComplete(dir.path())->step, 20);
  EXPECT_EQ(FindNewestComplete(dir.path(), CheckDepth::kChecksums)->step, 10);
  EXPECT_TRUE(
      Fails(CheckCheckpoint(dir.File("step-00000020"), CheckDepth::kChecksums)
                .status(),
            absl::StatusCode::kDataLoss, {shard, "CRC-32C"}));
  WriteText(shard, bytes + "x");
  EXPECT_TRUE(Fails(
      CheckCheckpoint(dir.File("step-00000020"), CheckDepth::kSizes).status(),
      absl::StatusCode::kDataLoss, {shard, "the manifest says"}));
  EXPECT_EQ(FindNewestComplete(dir.path())->step, 10);
  const auto newest = FindNewestComplete(dir.path(), CheckDepth::kChecksums);
  ASSERT_TRUE(newest.ok()) << newest.status();
  EXPECT_EQ(newest->path, dir.File("step-00000010"));
  ASSERT_EQ(newest->skipped.size(), 4u);
  EXPECT_NE(newest->skipped[0].find("step-00000050/manifest.json: is missing"),
            std::string::npos)
      << newest->skipped[0];
  EXPECT_NE(newest->skipped[3].find(shard), std::string::npos)
      << newest->skipped[3];

  // A shard that ends too early, and none is left.
  fs::resize_file(dir.File("step-00000010/rank-00000.safetensors"), 100);
  EXPECT_TRUE(Fails(FindNewestComplete(dir.path()).status(),
                    absl::StatusCode::kNotFound,
                    {"no complete checkpoint among 5", "step-00000050"}));
}

absl::Status Prune(const PruneOptions& options) {
  std::vector<std::string> trees;
  absl::Status status = PruneCheckpoints(options, trees);
  for (const std::string& tree : trees) {
    status.Update(RemoveTree(tree));
  }
  return status;
}

TEST(CheckpointDir, PruneKeepsTheNewestWholeOnes) {
  TempDir dir;
  for (const int64_t step : {10, 20, 30, 40, 50}) {
    SaveSmall({dir.path(), step, "a"}, 1);
  }
  fs::remove(dir.File("step-00000040/manifest.json"));
  BeginCheckpoint({dir.path(), 20, "stale"}).IgnoreError();
  BeginCheckpoint({dir.path(), 50, "stale"}).IgnoreError();
  BeginCheckpoint({dir.path(), 60, "running"}).IgnoreError();
  WriteText(dir.File("notes.txt"), "mine");
  ASSERT_TRUE(Prune({dir.path(), 50, 2}).ok());
  // 40 is not whole, so 30 is the second to keep.
  EXPECT_EQ(Steps(dir.path()), (std::vector<int64_t>{30, 40, 50}));
  EXPECT_FALSE(fs::exists(dir.File("step-00000020.tmp-stale")));
  EXPECT_FALSE(fs::exists(dir.File("step-00000050.tmp-stale")));
  EXPECT_TRUE(fs::exists(dir.File("step-00000060.tmp-running")));
  EXPECT_TRUE(fs::exists(dir.File("notes.txt")));

  ASSERT_TRUE(Prune({dir.path(), 50, 1}).ok());
  EXPECT_EQ(Steps(dir.path()), (std::vector<int64_t>{50}));
  EXPECT_EQ(FindNewestComplete(dir.path())->step, 50);
}

// A job runs again where an earlier run got further.
TEST(CheckpointDir, PruneLeavesLaterStepsAlone) {
  TempDir dir;
  for (const int64_t step : {5, 10, 100, 200}) {
    SaveSmall({dir.path(), step, "a"}, 1);
  }
  BeginCheckpoint({dir.path(), 15, "next"}).IgnoreError();
  ASSERT_TRUE(Prune({dir.path(), 10, 1}).ok());
  EXPECT_EQ(Steps(dir.path()), (std::vector<int64_t>{10, 100, 200}))
      << "what was just written stays, and it is not ours to remove the others";
  EXPECT_TRUE(fs::exists(dir.File("step-00000015.tmp-next")))
      << "a rank that is ahead writes there";
}

TEST(CheckpointDir, PruneRemovesNothingWhenNothingIsWhole) {
  TempDir dir;
  fs::create_directory(dir.File("step-00000010"));
  fs::create_directory(dir.File("step-00000020"));
  BeginCheckpoint({dir.path(), 10, "a"}).IgnoreError();
  ASSERT_TRUE(Prune({dir.path(), 20, 1}).ok());
  EXPECT_EQ(Steps(dir.path()), (std::vector<int64_t>{10, 20}));
  EXPECT_TRUE(fs::exists(dir.File("step-00000010.tmp-a")));
  EXPECT_TRUE(Prune({dir.File("missing"), 20, 1}).ok());
}

}  // namespace
}  // namespace troupe
