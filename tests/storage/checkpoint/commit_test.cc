#include "storage/checkpoint/commit.h"

#include <cstring>
#include <filesystem>
#include <set>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "proto/base/crc32c.h"
#include "storage/checkpoint/checkpoint_dir.h"
#include "storage/disk/directory.h"
#include "storage/disk/errno_status.h"
#include "storage/disk/storage_error.h"
#include "storage/engine/in_memory_engine.h"
#include "storage/engine/make_engine.h"
#include "tests/storage/checkpoint/small_checkpoint.h"
#include "tests/storage/disk/power_loss.h"
#include "tests/storage/temp_dir.h"

namespace troupe {
namespace {

namespace fs = std::filesystem;

TEST(Commit, TheNameAppearsOnlyWithTheCommit) {
  TempDir dir;
  const CheckpointAttempt attempt = {dir.File("new/dir"), 50, "job1-1"};
  const auto temporary = BeginCheckpoint(attempt);
  ASSERT_TRUE(temporary.ok()) << temporary.status().ToString();
  EXPECT_EQ(*temporary, dir.File("new/dir/step-00000050.tmp-job1-1"));
  EXPECT_EQ(*BeginCheckpoint(attempt), *temporary);  // the next rank's
  const auto file = WriteSmallShards(attempt, 0, 1);
  ASSERT_TRUE(file.ok()) << file.status().ToString();
  EXPECT_TRUE(ListCheckpoints(attempt.dir)->empty());

  const auto path = CommitCheckpoint(attempt, SmallManifest(50), {*file});
  ASSERT_TRUE(path.ok()) << path.status().ToString();
  EXPECT_EQ(*path, dir.File("new/dir/step-00000050"));
  EXPECT_FALSE(fs::exists(*temporary));
  const auto manifest = CheckCheckpoint(*path, CheckDepth::kChecksums);
  ASSERT_TRUE(manifest.ok()) << manifest.status().ToString();
  EXPECT_EQ(manifest->samples_consumed, 1600u);
  EXPECT_EQ(manifest->tensors.size(), 3u);
  // Written piece by piece, it is the same text.
  EXPECT_EQ(ReadText(*path + "/manifest.json"), FormatManifest(*manifest));
  const std::string shard = ReadText(*path + "/rank-00000.safetensors");
  EXPECT_EQ(manifest->files[0].crc32c, Crc32c(shard));
}

TEST(Commit, AnotherAttemptOfTheSameStepReplacesTheFirst) {
  TempDir dir;
  SaveSmall({dir.path(), 50, "a"}, 3);
  const std::string path = SaveSmall({dir.path(), 50, "b"}, 2);
  const auto manifest = CheckCheckpoint(path, CheckDepth::kChecksums);
  ASSERT_TRUE(manifest.ok()) << manifest.status().ToString();
  EXPECT_EQ(manifest->files.size(), 2u);
  // What it replaced is aside, for the writer that committed to remove.
  ASSERT_TRUE(AbandonCheckpoint({dir.path(), 50, "b"}).ok());
  EXPECT_EQ(std::distance(fs::directory_iterator(dir.path()), {}), 1);
}

// A checkpoint of one rank and one small tensor, with a file that it carries.
void SaveTiny(const CheckpointAttempt& attempt, float value) {
  // The ring's calls could not be recorded.
  const auto engine = MakeIoEngine({.kind = "thread_pool", .log = false});
  ASSERT_TRUE(engine.ok()) << engine.status();
  ASSERT_TRUE(BeginCheckpoint(attempt).ok());
  const auto shard =
      WriteShardFile(**engine, attempt, {.rank = 0},
                     {{"w", StoredDType::kF32, {1}, WholeTensor({1}), &value}});
  ASSERT_TRUE(shard.ok()) << shard.status();
  Manifest manifest = SmallManifest(attempt.step);
  manifest.job_name = absl::StrCat(value);
  const auto path =
      CommitCheckpoint(attempt, manifest, {*shard}, {{"config.json", "{}"}});
  ASSERT_TRUE(path.ok()) << path.status();
}

// Which of the two values the newest checkpoint holds, whole; "none".
std::string NewestIn(const std::string& dir) {
  const auto newest = FindNewestComplete(dir, CheckDepth::kChecksums);
  return newest.ok() ? ReadManifest(newest->path)->job_name : "none";
}

// Whenever the power goes there is the old checkpoint or the new one, whole;
// once the commit has returned, the new one.
TEST(Commit, SurvivesAPowerLoss) {
  struct Case {
    int64_t before;  // the step of the one that is there; -1: none
    bool refuse_exchange;
  };
  for (const Case& each :
       {Case{-1, false}, Case{40, false}, Case{50, false}, Case{50, true}}) {
    TempDir dir;
    const std::string root = fs::canonical(dir.path());
    if (each.before >= 0) SaveTiny({root + "/new/dir", each.before, "a"}, 1);
    DiskRecording recording(root, {.refuse_rename_flags = each.refuse_exchange});
    SaveTiny({root + "/new/dir", 50, "b"}, 2);
    std::vector<std::string> trees;
    ASSERT_TRUE(PruneCheckpoints(
                    {.dir = root + "/new/dir", .written = 50, .keep = 1}, trees)
                    .ok());
    for (const std::string& tree : trees) ASSERT_TRUE(RemoveTree(tree).ok());
    recording.EachOutcome([&](const CrashOutcome& crash) {
      const std::string found = NewestIn(crash.root + "/new/dir");
      if (found == "2") return;
      EXPECT_FALSE(crash.returned) << crash.after;
      EXPECT_EQ(found, each.before >= 0 ? "1" : "none") << crash.after;
      // Nothing that bears a checkpoint's name is torn.
      const auto entries = ListCheckpoints(crash.root + "/new/dir");
      ASSERT_TRUE(entries.ok()) << entries.status();
      for (const CheckpointEntry& entry : *entries) {
        EXPECT_TRUE(CheckCheckpoint(entry.path, CheckDepth::kChecksums).ok())
            << entry.path << " " << crash.after;
      }
    });
  }
}

// What the description says.
ShardFile Described(const std::string& directory, const ShardReceipt& receipt) {
  auto reader = DescriptionReader::Open(directory, receipt);
  CHECK_OK(reader.status());
  ShardFile shard = {.data_unchecked = reader->data_unchecked()};
  shard.file = reader->TakeFile();
  while (true) {
    const auto tensor = reader->Next();
    CHECK_OK(tensor.status());
    if (!tensor->has_value()) return shard;
    shard.tensors.push_back(**tensor);
  }
}

TEST(Commit, RefusesShardsThatDoNotTile) {
  TempDir dir;
  const CheckpointAttempt attempt = {dir.path(), 50, "a"};
  ASSERT_TRUE(BeginCheckpoint(attempt).ok());
  const auto first = WriteSmallShards(attempt, 0, 2);
  const auto second = WriteSmallShards(attempt, 1, 2);
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  EXPECT_TRUE(
      Fails(CommitCheckpoint(attempt, SmallManifest(50), {*first}).status(),
            kInvalid, {"step-00000050.tmp-a", "tensor ", "hold"}));
  const std::string directory = TemporaryDirectory(attempt);
  ShardFile other = Described(directory, *second);
  other.tensors.back().shape.push_back(1);
  const auto false_receipt = WriteDescription(directory, other);
  ASSERT_TRUE(false_receipt.ok()) << false_receipt.status();
  EXPECT_TRUE(Fails(
      CommitCheckpoint(attempt, SmallManifest(50), {*first, *false_receipt})
          .status(),
      kInvalid, {other.tensors.back().name, "ranks disagree"}));
  ASSERT_EQ(WriteSmallShards(attempt, 1, 2)->description_crc32c,
            second->description_crc32c);
  EXPECT_TRUE(Fails(
      CommitCheckpoint(attempt, SmallManifest(50), {*first, *second, *second})
          .status(),
      kInvalid, {"rank-00001.safetensors is there twice"}));
  EXPECT_TRUE(ListCheckpoints(dir.path())->empty());
  EXPECT_TRUE(
      CommitCheckpoint(attempt, SmallManifest(50), {*first, *second}).ok());
}

TEST(Commit, RefusesFilesThatAreNotAsTheirRankSaid) {
  TempDir dir;
  const CheckpointAttempt attempt = {dir.path(), 50, "a"};
  const std::string path = *BeginCheckpoint(attempt);
  const auto file = WriteSmallShards(attempt, 0, 1);
  const std::string shard = path + "/rank-00000.safetensors";
  const std::string whole = ReadText(shard);
  WriteText(shard, whole.substr(1));
  EXPECT_TRUE(
      Fails(CommitCheckpoint(attempt, SmallManifest(50), {*file}).status(),
            absl::StatusCode::kDataLoss, {shard, "its rank wrote"}));
  fs::remove(shard);
  EXPECT_TRUE(
      Fails(CommitCheckpoint(attempt, SmallManifest(50), {*file}).status(),
            absl::StatusCode::kNotFound, {shard}));
  EXPECT_TRUE(AbandonCheckpoint(attempt).ok());
  EXPECT_FALSE(fs::exists(path));
  EXPECT_TRUE(AbandonCheckpoint(attempt).ok());
}

TEST(Commit, ARankTakesBackItsShardAlone) {
  TempDir dir;
  const CheckpointAttempt attempt = {dir.path(), 50, "a"};
  const std::string path = *BeginCheckpoint(attempt);
  for (const int rank : {0, 1}) {
    ASSERT_TRUE(WriteSmallShards(attempt, rank, 2).ok());
  }
  EXPECT_TRUE(AbandonShard(attempt, 1).ok());
  for (const auto& entry : fs::directory_iterator(path)) {
    EXPECT_EQ(entry.path().filename().string().find("rank-00000"), 0u)
        << entry.path();
  }
  EXPECT_TRUE(fs::exists(path + "/rank-00000.safetensors"));
  EXPECT_TRUE(AbandonShard(attempt, 0).ok());
  EXPECT_FALSE(fs::exists(path)) << "the last one takes the directory";
  EXPECT_TRUE(AbandonShard(attempt, 0).ok());
}

TEST(Commit, IsAskedLastWhetherItMay) {
  TempDir dir;
  const CheckpointAttempt attempt = {dir.path(), 50, "a"};
  ASSERT_TRUE(BeginCheckpoint(attempt).ok());
  const auto file = WriteSmallShards(attempt, 0, 1);
  const absl::Status refused =
      CommitCheckpoint(attempt, SmallManifest(50), {*file}, {}, [&] {
        EXPECT_TRUE(fs::exists(TemporaryDirectory(attempt) + "/manifest.json"));
        return absl::FailedPreconditionError("it is another's");
      }).status();
  EXPECT_TRUE(Fails(refused, absl::StatusCode::kFailedPrecondition,
                    {"it is another's"}));
  EXPECT_TRUE(ListCheckpoints(dir.path())->empty());
  // Given up at the last moment, it is none, not one without its files.
  ASSERT_TRUE(WriteSmallShards(attempt, 0, 1).ok());
  EXPECT_FALSE(CommitCheckpoint(attempt, SmallManifest(50), {*file}, {}, [&] {
                 return AbandonCheckpoint(attempt);
               }).ok());
  EXPECT_TRUE(fs::is_empty(dir.path()));
}

TEST(Commit, FetchesWhatTheHostCannotRead) {
  TempDir dir;
  std::vector<float> data(2'300'000);  // two pieces and a bit
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<float>(i);
  ShardToWrite shard = {"w",
                        StoredDType::kF32,
                        {2'300'000},
                        WholeTensor({2'300'000}),
                        data.data()};
  InMemoryEngine engine(4, {});
  const CheckpointAttempt attempt = {dir.path(), 50, "a"};
  const std::string directory = *BeginCheckpoint(attempt);
  const auto whole = WriteShardFile(engine, attempt, {.rank = 0}, {shard});
  ASSERT_TRUE(whole.ok()) << whole.status();
  shard.data = nullptr;
  shard.fetch = [&](uint64_t offset, absl::Span<char> bytes) {
    std::memcpy(bytes.data(), reinterpret_cast<char*>(data.data()) + offset,
                bytes.size());
    return absl::OkStatus();
  };
  const auto fetched = WriteShardFile(engine, attempt, {.rank = 1}, {shard});
  ASSERT_TRUE(fetched.ok()) << fetched.status();
  EXPECT_EQ(fetched->bytes, whole->bytes);
  EXPECT_EQ(Described(directory, *fetched).file.crc32c,
            Described(directory, *whole).file.crc32c);
  // An nvme tier, say: to write it again to where checkpoints go is of no use.
  shard.fetch = [](uint64_t, absl::Span<char>) {
    return ErrnoStatus(EIO, "/nvme/spill: read");
  };
  const absl::Status gone =
      WriteShardFile(engine, attempt, {.rank = 2}, {shard}).status();
  EXPECT_TRUE(Fails(gone, absl::StatusCode::kUnavailable,
                    {"w: /nvme/spill: read: EIO"}));
  EXPECT_FALSE(IsOfStorage(gone));
}

TEST(Commit, WritingToAFullDiskFailsAndNamesTheFile) {
  TempDir dir;
  const CheckpointAttempt attempt = {dir.path(), 50, "a"};
  ASSERT_TRUE(BeginCheckpoint(attempt).ok());
  const std::vector<float> data(10'000);
  const ShardToWrite shard = {
      "w", StoredDType::kF32, {10'000}, WholeTensor({10'000}), data.data()};
  InMemoryEngine full(4, {.disk_bytes = 20'000});
  EXPECT_TRUE(
      Fails(WriteShardFile(full, attempt, {.rank = 3}, {shard}).status(),
            absl::StatusCode::kResourceExhausted,
            {"tmp-a/rank-00003.safetensors", "ENOSPC"}));
  InMemoryEngine broken(4, {.sync_error = EIO});
  EXPECT_TRUE(
      Fails(WriteShardFile(broken, attempt, {.rank = 3}, {shard}).status(),
            absl::StatusCode::kUnavailable, {"fsync"}));
  EXPECT_TRUE(ListCheckpoints(dir.path())->empty());
}

TEST(Commit, ABoxOutsideItsTensorIsRefused) {
  TempDir dir;
  const float value = 0;
  InMemoryEngine engine(4);
  EXPECT_TRUE(
      Fails(WriteShardFile(engine, {dir.path(), 1, "a"}, {.rank = 0},
                           {{"w", StoredDType::kF32, {4}, {{4}, {1}}, &value}})
                .status(),
            absl::StatusCode::kInvalidArgument, {"w: box", "is not inside"}));
}

// They are no part of a checkpoint, and its files are those of its manifest.
TEST(Commit, LeavesNoDescriptions) {
  TempDir dir;
  const std::string path = SaveSmall({dir.path(), 50, "a"}, 2);
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(path)) {
    names.insert(entry.path().filename());
  }
  EXPECT_EQ(names,
            (std::set<std::string>{"manifest.json", "rank-00000.safetensors",
                                   "rank-00001.safetensors"}));
}

}  // namespace
}  // namespace troupe
