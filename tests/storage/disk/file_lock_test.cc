#include "storage/disk/file_lock.h"

#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <optional>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "proto/base/check.h"
#include "tests/storage/disk/as_nobody.h"
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

// In a folder that several users write, it is another's.
TEST(FileLock, OneOfAnotherUserNamesItsHolderOrGivesWay) {
  TempDir dir;
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

// Whether the kernel knows of somebody who waits for a lock on the file.
bool IsAwaited(const std::string& path) {
  struct stat info;
  CHECK_EQ(stat(path.c_str(), &info), 0);
  const std::string inode = absl::StrCat(":", info.st_ino, " ");
  std::ifstream locks("/proc/locks");
  for (std::string line; std::getline(locks, line);) {
    if (absl::StrContains(line, "-> FLOCK") && absl::StrContains(line, inode)) {
      return true;
    }
  }
  return false;
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

TEST(FileLock, ErrorsNameTheFile) {
  TempDir dir;
  EXPECT_TRUE(Fails(FileLock::Take(dir.File("no/lock"), "x").status(),
                    absl::StatusCode::kNotFound, {dir.File("no/lock")}));
}

}  // namespace
}  // namespace troupe
