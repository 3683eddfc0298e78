#include "storage/disk/file_lock.h"

#include <atomic>
#include <filesystem>
#include <optional>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "tests/storage/disk/as_nobody.h"
#include "tests/storage/disk/is_awaited.h"
#include "tests/storage/disk/power_loss.h"
#include "tests/storage/temp_dir.h"

namespace troupe {
namespace {

TEST(FileLock, SaysWhoHoldsIt) {
  TempDir dir;
  const std::string path = dir.File("lock");
  absl::StatusOr<FileLock> first = FileLock::Take(path, "job 3");
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_TRUE(Fails(FileLock::Take(path, "job 4").status(),
                    absl::StatusCode::kFailedPrecondition, {"job 3"}));
  {
    const FileLock moved = *std::move(first);
    EXPECT_FALSE(FileLock::Take(path, "job 4").ok());
    EXPECT_TRUE(FileLock::IsHeld(path));
  }
  EXPECT_TRUE(FileLock::Take(path, "job 4").ok());
  EXPECT_FALSE(std::filesystem::exists(path)) << "the file goes with the lock";
  EXPECT_FALSE(FileLock::IsHeld(path));
  WriteText(path, "left by a crash");
  EXPECT_FALSE(FileLock::IsHeld(path));
  EXPECT_TRUE(FileLock::Take(path, "job 5").ok());
}

// All file systems can do one of these.
const RecordingOptions kFileSystems[] = {
    {},
    {.refuse_rename_flags = true},
    {.refuse_rename_flags = true, .repeat_links = true},
    {.refuse_rename_flags = true, .refuse_links = true}};

std::vector<std::string> NamesIn(const TempDir& dir) {
  std::vector<std::string> names;
  for (const auto& each : std::filesystem::directory_iterator(dir.path())) {
    names.push_back(each.path().filename());
  }
  return names;
}

TEST(FileLock, OnlyTheHolderThatIsMeantIsSuperseded) {
  for (const RecordingOptions& file_system : kFileSystems) {
    TempDir dir;
    const std::string path = dir.File("lock");
    const DiskRecording recording(dir.path(), file_system);
    EXPECT_TRUE(FileLock::TakeFrom(path, "job 3", "job 3").ok())
        << "nobody holds it";
    const absl::StatusOr<FileLock> first =
        FileLock::Take(path, "job 3, pid 17");
    ASSERT_TRUE(first.ok()) << first.status();
    EXPECT_TRUE(Fails(FileLock::TakeFrom(path, "job 4", "job 4").status(),
                      absl::StatusCode::kFailedPrecondition,
                      {"job 3, pid 17"}));
    EXPECT_FALSE(first->superseded());
    const absl::StatusOr<FileLock> second =
        FileLock::TakeFrom(path, "job 3, pid 18", "job 3");
    ASSERT_TRUE(second.ok()) << second.status();
    EXPECT_TRUE(first->superseded());
    EXPECT_FALSE(second->superseded());
    EXPECT_TRUE(Fails(FileLock::Take(path, "job 4").status(),
                      absl::StatusCode::kFailedPrecondition,
                      {"job 3, pid 18"}));
    EXPECT_EQ(NamesIn(dir), std::vector<std::string>{"lock"});
  }
}

// The holder ends, and another one comes, after it was looked at.
TEST(FileLock, WhoCameJustNowIsNotSuperseded) {
  for (RecordingOptions file_system : kFileSystems) {
    TempDir dir;
    const std::string path = dir.File("lock");
    std::optional<FileLock> first = *FileLock::Take(path, "job 3, pid 17");
    std::optional<FileLock> other;
    file_system.before_rename = [&] {
      first.reset();
      other = *FileLock::Take(path, "job 9");
    };
    const DiskRecording recording(dir.path(), file_system);
    EXPECT_TRUE(
        Fails(FileLock::TakeFrom(path, "job 3, pid 18", "job 3").status(),
              absl::StatusCode::kFailedPrecondition, {"another process"}));
    ASSERT_TRUE(other.has_value());
    EXPECT_FALSE(other->superseded());
    EXPECT_TRUE(Fails(FileLock::Take(path, "job 4").status(),
                      absl::StatusCode::kFailedPrecondition, {"job 9"}));
    EXPECT_EQ(NamesIn(dir), std::vector<std::string>{"lock"});
  }
}

// The holder that lets go and the one that supersedes it look at the name at
// the same time.
TEST(FileLock, WhoLetsGoTakesTheNameOfNobodyElse) {
  for (RecordingOptions file_system : kFileSystems) {
    TempDir dir;
    const std::string path = dir.File("lock");
    std::optional<FileLock> first = *FileLock::Take(path, "job 3, pid 17");
    std::optional<FileLock> second;
    file_system.before_rename = [&] {
      second = *FileLock::TakeFrom(path, "job 3, pid 18", "job 3");
    };
    const DiskRecording recording(dir.path(), file_system);
    first.reset();
    ASSERT_TRUE(second.has_value());
    EXPECT_FALSE(second->superseded());
    EXPECT_TRUE(Fails(FileLock::Take(path, "job 4").status(),
                      absl::StatusCode::kFailedPrecondition,
                      {"job 3, pid 18"}));
    EXPECT_EQ(NamesIn(dir), std::vector<std::string>{"lock"});
  }
}

TEST(FileLock, OnAFullDiskTheHolderKeepsIt) {
  TempDir dir;
  const std::string path = dir.File("lock");
  const absl::StatusOr<FileLock> first = FileLock::Take(path, "job 3, pid 17");
  ASSERT_TRUE(first.ok()) << first.status();
  const std::string left = dir.File("left");
  WriteText(left, "job 3, pid 17, of whom a crash has left this\n");
  {
    const FullDisk full(dir.path());
    EXPECT_TRUE(
        Fails(FileLock::TakeFrom(path, "job 3, pid 18", "job 3").status(),
              absl::StatusCode::kResourceExhausted, {"ENOSPC"}));
    EXPECT_FALSE(first->superseded());
    EXPECT_TRUE(Fails(FileLock::Take(path, "job 4").status(),
                      absl::StatusCode::kFailedPrecondition,
                      {"job 3, pid 17"}));
    EXPECT_TRUE(Fails(FileLock::Take(dir.File("new"), "job 4").status(),
                      absl::StatusCode::kResourceExhausted, {"ENOSPC"}));
    EXPECT_EQ(NamesIn(dir).size(), 2u) << "no lock without a holder stays";
    // What is there is written over.
    const absl::StatusOr<FileLock> over = FileLock::Take(left, "job 4");
    ASSERT_TRUE(over.ok()) << over.status();
    EXPECT_EQ(FileLock::Take(left, "job 5").status(),
              absl::FailedPreconditionError("job 4"));
  }
  const absl::StatusOr<FileLock> second =
      FileLock::TakeFrom(path, "job 3, pid 18", "job 3");
  EXPECT_TRUE(second.ok()) << second.status();
  EXPECT_TRUE(first->superseded());
}

// In a folder that several users write, it is another's.
TEST(FileLock, OneOfAnotherUserNamesItsHolderOrGivesWay) {
  TempDir dir(kEverybodysDirectory);
  const std::string path = dir.File("lock");
  std::filesystem::permissions(dir.path(), std::filesystem::perms::all);
  absl::StatusOr<FileLock> first = FileLock::Take(path, "job 3");
  ASSERT_TRUE(first.ok()) << first.status();
  std::filesystem::permissions(path, std::filesystem::perms(0444));
  {
    const AsNobody other;
    EXPECT_TRUE(Fails(FileLock::Take(path, "job 4").status(),
                      absl::StatusCode::kFailedPrecondition, {"job 3"}));
  }
  std::filesystem::create_hard_link(path, dir.File("kept"));
  *first = *FileLock::Take(dir.File("elsewhere"), "job 3");  // and lets it go
  std::filesystem::rename(dir.File("kept"), path);  // as a crash leaves it
  const AsNobody other;
  const absl::StatusOr<FileLock> second = FileLock::Take(path, "job 4");
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_TRUE(Fails(FileLock::Take(path, "job 5").status(),
                    absl::StatusCode::kFailedPrecondition, {"job 4"}));
}

// Its file may go at any moment between another's open and lock.
TEST(FileLock, IsHeldByOneThoughItsFileGoes) {
  TempDir dir;
  const std::string path = dir.File("lock");
  std::atomic<int> holders = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        const absl::StatusOr<FileLock> lock = FileLock::Await(path, "x");
        ASSERT_TRUE(lock.ok()) << lock.status();
        EXPECT_EQ(++holders, 1);
        --holders;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(FileLock, WaitsForItsTurn) {
  TempDir dir;
  const std::string path = dir.File("lock");
  absl::Notification has_it;
  std::optional<FileLock> first = *FileLock::Take(path, "a");
  std::thread second([&] {
    EXPECT_TRUE(FileLock::Await(path, "b").ok());
    has_it.Notify();
  });
  while (!IsAwaited(path) && !has_it.HasBeenNotified()) {
    std::this_thread::yield();
  }
  EXPECT_FALSE(has_it.HasBeenNotified());
  first.reset();
  second.join();
}

// A command looks for a scheduler that lives while one is being started.
TEST(FileLock, WhoAsksForItTakesItFromNobody) {
  TempDir dir;
  const std::string path = dir.File("lock");
  std::atomic<bool> ended = false;
  std::atomic<int> asked = 0;
  std::thread asking([&] {
    while (!ended) {
      FileLock::IsHeld(path);
      ++asked;
    }
  });
  while (asked < 40'000 && !HasFailure()) {
    WriteText(path, "left by a crash");
    const absl::StatusOr<FileLock> lock = FileLock::Take(path, "job 3");
    EXPECT_TRUE(lock.ok()) << lock.status();
  }
  const absl::StatusOr<FileLock> lock = FileLock::Take(path, "job 3");
  EXPECT_TRUE(Fails(FileLock::Take(path, "job 4").status(),
                    absl::StatusCode::kFailedPrecondition, {"job 3"}));
  ended = true;
  asking.join();
}

TEST(FileLock, OfSeveralWhoTakeItAtOnceOneHasIt) {
  TempDir dir;
  const std::string path = dir.File("lock");
  for (int i = 0; i < 30; ++i) {
    std::atomic<int> taken = 0;
    std::vector<std::optional<FileLock>> locks(4);
    std::vector<std::thread> threads;
    for (std::optional<FileLock>& lock : locks) {
      threads.emplace_back([&] {
        absl::StatusOr<FileLock> mine = FileLock::Take(path, "x");
        if (!mine.ok()) return;
        ++taken;
        lock = *std::move(mine);
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(taken, 1);
  }
}

TEST(FileLock, ErrorsNameTheFile) {
  TempDir dir;
  EXPECT_TRUE(Fails(FileLock::Take(dir.File("no/lock"), "x").status(),
                    absl::StatusCode::kNotFound, {dir.File("no/lock")}));
}

}  // namespace
}  // namespace troupe
