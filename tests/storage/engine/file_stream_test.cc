#include "storage/engine/file_stream.h"

#include <cerrno>

#include "gtest/gtest.h"
#include "proto/base/check.h"
#include "proto/base/crc32c.h"
#include "proto/base/philox.h"
#include "storage/engine/in_memory_engine.h"
#include "storage/engine/make_engine.h"
#include "tests/storage/temp_dir.h"

namespace troupe {
namespace {

FileStreamOptions Small() {
  return {.buffer_bytes = kIoAlignment, .buffers = 3};
}

std::string Text(size_t bytes) {
  std::string text(bytes, '\0');
  for (size_t i = 0; i < bytes; ++i) {
    text[i] = static_cast<char>(PhiloxUint32({.seed = 2}, i));
  }
  return text;
}

// Appends in pieces of growing size; leaves the errors to Finish.
absl::StatusOr<FileSummary> Write(IoEngine& engine, const std::string& path,
                                  absl::string_view text) {
  auto stream = FileStream::Create(engine, path, Small());
  if (!stream.ok()) return stream.status();
  for (size_t piece = 1; !text.empty(); piece = piece * 3 + 1) {
    (*stream)->Append(text.substr(0, piece)).IgnoreError();
    text.remove_prefix(std::min(piece, text.size()));
  }
  return (*stream)->Finish();
}

TEST(FileStream, WritesWhatWasAppendedWithItsChecksum) {
  TempDir dir;
  const auto engine = MakeIoEngine();
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{4095}, size_t{4096},
                             size_t{4097}, size_t{8192}, size_t{100'000}}) {
    const std::string text = Text(bytes);
    const auto summary = Write(**engine, dir.File("f"), text);
    ASSERT_TRUE(summary.ok()) << summary.status().ToString();
    EXPECT_EQ(summary->bytes, bytes);
    EXPECT_EQ(summary->crc32c, Crc32c(text));
    EXPECT_EQ(ReadText(dir.File("f")), text);
  }
}

TEST(FileStream, OrderOfCompletionDoesNotMatter) {
  InMemoryEngine engine(8, {.operation_bytes_max = 1234, .shuffle_seed = 3});
  const std::string text = Text(50'000);
  ASSERT_TRUE(Write(engine, "f", text).ok());
  EXPECT_EQ(engine.Content("f"), text);
}

TEST(FileStream, AnEngineOfDepthOneIsEnough) {
  InMemoryEngine engine(1);
  const std::string text = Text(20'000);
  ASSERT_TRUE(Write(engine, "f", text).ok());
  EXPECT_EQ(engine.Content("f"), text);
}

TEST(FileStream, EveryFailingOperationIsReported) {
  const std::string text = Text(30'000);  // 8 operations
  for (int operation = 0; operation < 8; ++operation) {
    InMemoryEngine engine(4, {.errors = {{operation, EIO}}});
    EXPECT_TRUE(Fails(Write(engine, "f", text).status(),
                      absl::StatusCode::kUnavailable, {"f: write", "EIO"}))
        << operation;
    EXPECT_EQ(engine.in_flight(), 0);
  }
}

TEST(FileStream, FullDiskAndFailedSyncAreReported) {
  InMemoryEngine full(4, {.disk_bytes = 10'000});
  EXPECT_TRUE(Fails(Write(full, "f", Text(30'000)).status(),
                    absl::StatusCode::kResourceExhausted, {"ENOSPC"}));
  InMemoryEngine unsynced(4, {.sync_error = EIO});
  EXPECT_TRUE(Fails(Write(unsynced, "f", "x").status(),
                    absl::StatusCode::kUnavailable, {"f: fsync"}));
}

TEST(FileStream, TellsOfBytesWhenTheDiskHasThem) {
  InMemoryEngine engine(4);
  FileStreamOptions options = Small();
  uint64_t told = 0;
  options.moved = [&](uint64_t bytes) {
    told += bytes;
    return absl::OkStatus();
  };
  const auto stream = FileStream::Create(engine, "f", options);
  ASSERT_TRUE((*stream)->Append(Text(30'000)).ok());
  EXPECT_GE(told, 30'000 - 4 * kIoAlignment);
  EXPECT_LT(told, 30'000u);
  ASSERT_TRUE((*stream)->Finish().ok());
  EXPECT_EQ(told, 30'000u);
}

TEST(FileStream, EndsWhereItsCallerHasHadEnough) {
  InMemoryEngine engine(4);
  FileStreamOptions options = Small();
  uint64_t told = 0;
  options.moved = [&](uint64_t bytes) -> absl::Status {
    told += bytes;
    if (told < 20'000) return absl::OkStatus();
    return absl::CancelledError("enough");
  };
  const auto stream = FileStream::Create(engine, "f", options);
  EXPECT_EQ((*stream)->Append(Text(1'000'000)), absl::CancelledError("enough"));
  EXPECT_LT(told, 20'000 + 4 * kIoAlignment);
  EXPECT_EQ((*stream)->Finish().status(), absl::CancelledError("enough"));
}

TEST(FileStream, KnowsTheChecksumOfEachBlock) {
  FileStreamOptions options = Small();
  options.block_bytes = 10'000;
  for (const size_t bytes : {0, 1, 10'000, 10'001, 35'000}) {
    InMemoryEngine engine(4);
    const std::string text = Text(bytes);
    const auto stream = FileStream::Create(engine, "f", options);
    for (size_t at = 0; at < bytes; at += 777) {
      ASSERT_TRUE((*stream)->Append(text.substr(at, 777)).ok());
    }
    std::vector<uint32_t> blocks;
    for (size_t at = 0; at < bytes; at += 10'000) {
      blocks.push_back(Crc32c(text.substr(at, 10'000)));
    }
    EXPECT_EQ((*stream)->Finish()->blocks, blocks);
  }
}

// A disk that says how often it was synced, and how much lay there unsynced.
class SyncedDisk final : public IoEngine {
 public:
  absl::string_view name() const override { return "synced"; }
  int depth() const override { return disk_.depth(); }
  int in_flight() const override { return disk_.in_flight(); }
  absl::StatusOr<IoFile> Open(const std::string& path, IoMode mode) override {
    return disk_.Open(path, mode);
  }
  absl::StatusOr<uint64_t> Size(IoFile file) override {
    return disk_.Size(file);
  }
  std::vector<IoCompletion> Poll(absl::Duration timeout) override {
    return disk_.Poll(timeout);
  }
  void Cancel() override { disk_.Cancel(); }
  absl::Status Sync(IoFile file) override {
    unsynced_ = 0;
    return disk_.Sync(file);
  }
  absl::Status Close(IoFile file) override { return disk_.Close(file); }

  size_t unsynced_max = 0;

 protected:
  void Start(absl::Span<const IoRequest> requests) override {
    for (const IoRequest& request : requests) unsynced_ += request.bytes;
    unsynced_max = std::max(unsynced_max, unsynced_);
    CHECK_OK(disk_.Submit(requests));
  }

 private:
  InMemoryEngine disk_{4};
  size_t unsynced_ = 0;
};

TEST(FileStream, DoesNotLeaveAllOfAFileToOneSync) {
  SyncedDisk disk;
  const auto stream = FileStream::Create(disk, "f");
  const std::string text(1 << 20, 'a');
  for (int i = 0; i < 8; ++i) ASSERT_TRUE((*stream)->Append(text).ok());
  EXPECT_EQ(disk.unsynced_max, size_t{8} << 20);
  ASSERT_TRUE((*stream)->Append(text).ok());
  ASSERT_TRUE((*stream)->Finish().ok());
  EXPECT_EQ(disk.unsynced_max, size_t{8} << 20);
}

// A cache takes the first of it in no time; the disk behind it need not.
TEST(FileStream, LeavesLittleToASyncHoweverFastTheLastOneWas) {
  SyncedDisk disk;
  const auto stream = FileStream::Create(disk, "f");
  const std::string text(1 << 20, 'a');
  for (int i = 0; i < 200; ++i) {
    ASSERT_TRUE((*stream)->Append(text).ok());
    if (i < 24) {
      EXPECT_LE(disk.unsynced_max, size_t{16} << 20) << i;
    }
  }
  ASSERT_TRUE((*stream)->Finish().ok());
  EXPECT_LE(disk.unsynced_max, size_t{32} << 20);
}

}  // namespace
}  // namespace troupe
