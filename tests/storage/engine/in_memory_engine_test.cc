#include "storage/engine/in_memory_engine.h"

#include <cerrno>

#include "gtest/gtest.h"
#include "tests/storage/temp_dir.h"

namespace troupe {
namespace {

TEST(InMemoryEngine, FailsTheOperationsThatWereChosen) {
  InMemoryEngine engine(8, {.errors = {{1, EIO}}});
  const IoFile file = *engine.Open("f", IoMode::kCreate);
  std::string bytes = "abc";
  for (uint64_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(
        engine.Submit({IoKind::kWrite, file, i, bytes.data() + i, 1, i}).ok());
  }
  const auto done = engine.Poll(absl::ZeroDuration());
  ASSERT_EQ(done.size(), 3u);
  EXPECT_TRUE(done[0].status.ok());
  EXPECT_TRUE(Fails(done[1].status, absl::StatusCode::kUnavailable,
                    {"f: write of 1 bytes at offset 1", "EIO"}));
  EXPECT_TRUE(done[2].status.ok());
  EXPECT_EQ(engine.Content("f"), std::string("a\0c", 3));
}

TEST(InMemoryEngine, FullDiskKeepsWhatFitted) {
  InMemoryEngine engine(8, {.disk_bytes = 5});
  const IoFile other = *engine.Open("other", IoMode::kCreate);
  const IoFile file = *engine.Open("f", IoMode::kCreate);
  std::string bytes = "abcdef";
  ASSERT_TRUE(
      engine.Submit({IoKind::kWrite, other, 0, bytes.data(), 2, 0}).ok());
  ASSERT_TRUE(
      engine.Submit({IoKind::kWrite, file, 0, bytes.data(), 6, 1}).ok());
  const auto done = engine.Poll(absl::ZeroDuration());
  EXPECT_TRUE(done[0].status.ok());
  EXPECT_TRUE(Fails(done[1].status, absl::StatusCode::kResourceExhausted,
                    {"at offset 3", "ENOSPC"}));
  EXPECT_EQ(engine.Content("f"), "abc");
}

TEST(InMemoryEngine, ShufflesCompletions) {
  InMemoryEngine engine(16, {.shuffle_seed = 1});
  const IoFile file = *engine.Open("f", IoMode::kCreate);
  std::string bytes(16, 'x');
  for (uint64_t i = 0; i < 16; ++i) {
    ASSERT_TRUE(
        engine.Submit({IoKind::kWrite, file, i, bytes.data(), 1, i}).ok());
  }
  bool in_order = true;
  for (uint64_t i = 0; i < 16; ++i) {
    const auto done = engine.Poll(absl::ZeroDuration());
    ASSERT_EQ(done.size(), 1u);
    in_order = in_order && done[0].tag == i;
  }
  EXPECT_FALSE(in_order);
  EXPECT_EQ(engine.in_flight(), 0);
}

TEST(InMemoryEngine, DoesNothingOfWhatIsCancelled) {
  InMemoryEngine engine(2);
  const IoFile file = *engine.Open("f", IoMode::kCreate);
  std::string bytes = "abc";
  ASSERT_TRUE(
      engine.Submit({IoKind::kWrite, file, 0, bytes.data(), 3, 7}).ok());
  engine.Cancel();
  EXPECT_EQ(engine.in_flight(), 1);
  const auto done = engine.Poll(absl::ZeroDuration());
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].tag, 7);
  EXPECT_TRUE(Fails(done[0].status, absl::StatusCode::kCancelled,
                    {"f: write of 3 bytes at offset 0: was cancelled"}));
  EXPECT_EQ(engine.Content("f"), "");
  EXPECT_EQ(engine.in_flight(), 0);
}

TEST(InMemoryEngine, SyncFails) {
  InMemoryEngine engine(1, {.sync_error = EIO});
  const IoFile file = *engine.Open("f", IoMode::kCreate);
  EXPECT_TRUE(
      Fails(engine.Sync(file), absl::StatusCode::kUnavailable, {"f: fsync"}));
}

}  // namespace
}  // namespace troupe
