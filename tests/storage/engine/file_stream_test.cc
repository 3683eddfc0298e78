#include "storage/engine/file_stream.h"

#include <cerrno>

#include "gtest/gtest.h"
#include "proto/base/crc32c.h"
#include "proto/base/philox.h"
#include "storage/engine/in_memory_engine.h"
#include "storage/engine/make_engine.h"
#include "tests/storage/temp_dir.h"

namespace troupe {
namespace {

constexpr FileStreamOptions kSmall = {.buffer_bytes = kIoAlignment,
                                      .buffers = 3};

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
  auto stream = FileStream::Create(engine, path, kSmall);
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
                      absl::StatusCode::kDataLoss, {"f: write", "EIO"}))
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
                    absl::StatusCode::kDataLoss, {"f: fsync"}));
}

}  // namespace
}  // namespace troupe
