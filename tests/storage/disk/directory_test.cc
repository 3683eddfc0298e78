#include "storage/disk/directory.h"

#include <filesystem>

#include "gtest/gtest.h"
#include "storage/disk/new_file.h"
#include "tests/storage/disk/as_nobody.h"
#include "tests/storage/disk/power_loss.h"
#include "tests/storage/temp_dir.h"

namespace troupe {
namespace {

namespace fs = std::filesystem;

TEST(Directory, KnowsTheParent) {
  EXPECT_EQ(ParentDirectory("/a/b"), "/a");
  EXPECT_EQ(ParentDirectory("a/b/"), "a");
  EXPECT_EQ(ParentDirectory("/a"), "/");
  EXPECT_EQ(ParentDirectory("/"), "/");
  EXPECT_EQ(ParentDirectory("a"), ".");
}

TEST(Directory, MakesWhatIsMissing) {
  TempDir dir;
  ASSERT_TRUE(MakeDirectories(dir.File("a/b/c/")).ok());
  EXPECT_TRUE(fs::is_directory(dir.File("a/b/c")));
  EXPECT_TRUE(MakeDirectories(dir.File("a/b")).ok());
  WriteText(dir.File("f"), "");
  EXPECT_TRUE(Fails(MakeDirectories(dir.File("f")),
                    absl::StatusCode::kFailedPrecondition,
                    {dir.File("f"), "ENOTDIR"}));
  EXPECT_TRUE(Fails(MakeDirectories(dir.File("f/x")),
                    absl::StatusCode::kFailedPrecondition,
                    {dir.File("f/x"), "ENOTDIR"}));
  EXPECT_FALSE(MakeDirectories("/proc/none/x").ok());
}

TEST(Directory, TellsOfWhatItRemovesAndEndsWhereToldTo) {
  TempDir dir;
  ASSERT_TRUE(MakeDirectories(dir.File("a/b/c")).ok());
  for (const char* name : {"a/f", "a/b/f", "a/b/c/f"}) {
    WriteText(dir.File(name), "12345");
  }
  fs::create_symlink("/proc", dir.File("a/link"));
  EXPECT_EQ(TreeBytes(dir.File("a")), 15u);
  uint64_t told = 0;
  const auto stop_after = [&told](uint64_t bytes_max) {
    return [&told, bytes_max](uint64_t bytes) {
      told += bytes;
      return told < bytes_max ? absl::OkStatus()
                              : absl::CancelledError("enough");
    };
  };
  EXPECT_EQ(RemoveTree(dir.File("a"), stop_after(1)),
            absl::CancelledError("enough"));
  EXPECT_TRUE(fs::exists(dir.File("a")));
  EXPECT_TRUE(RemoveTree(dir.File("a"), stop_after(1000)).ok());
  EXPECT_GE(told, 15u);
  EXPECT_TRUE(fs::is_empty(dir.path()));
}

TEST(Directory, IsAskedWhetherItTakesFiles) {
  const TempDir dir(kEverybodysDirectory);
  EXPECT_TRUE(CheckDirectoryTakesFiles(dir.path()).ok());
  EXPECT_TRUE(CheckDirectoryTakesFiles(dir.File("a/b/c/")).ok());
  EXPECT_TRUE(CheckDirectoryTakesFiles("here").ok());
  EXPECT_TRUE(fs::is_empty(dir.path()));
  WriteText(dir.File("f"), "");
  for (const std::string& path : {dir.File("f"), dir.File("f/x")}) {
    EXPECT_TRUE(Fails(CheckDirectoryTakesFiles(path),
                      absl::StatusCode::kFailedPrecondition,
                      {dir.File("f"), "ENOTDIR"}))
        << path;
  }
  fs::create_directory(dir.File("closed"));
  fs::permissions(dir.path(), fs::perms(0755));
  fs::permissions(dir.File("closed"), fs::perms(0555));
  const AsNobody user;
  EXPECT_TRUE(Fails(CheckDirectoryTakesFiles(dir.File("closed/x")),
                    absl::StatusCode::kPermissionDenied,
                    {dir.File("closed") + ": make a file in it", "EACCES"}));
}

TEST(Directory, ErrorsNameThePath) {
  TempDir dir;
  constexpr auto kNotFound = absl::StatusCode::kNotFound;
  EXPECT_TRUE(
      Fails(SyncDirectory(dir.File("no")), kNotFound, {dir.File("no")}));
  EXPECT_TRUE(Fails(SyncTree(dir.File("no")), kNotFound, {dir.File("no")}));
  EXPECT_TRUE(Fails(RenameDurably(dir.File("no"), dir.File("x")), kNotFound,
                    {dir.File("no"), "rename to"}));
  EXPECT_TRUE(RemoveTree(dir.File("no")).ok());
}

TEST(Directory, MakesNamesWhereItMayNotList) {
  TempDir dir(kEverybodysDirectory);
  fs::permissions(dir.path(), fs::perms::all);
  fs::create_directory(dir.File("scratch"));
  fs::permissions(dir.File("scratch"), fs::perms(01333));
  {
    const AsNobody user;
    const absl::Status made = MakeDirectories(dir.File("scratch/me/c"));
    EXPECT_TRUE(made.ok()) << made;
    EXPECT_TRUE(
        RenameDurably(dir.File("scratch/me"), dir.File("scratch/us")).ok());
    EXPECT_TRUE(ReplaceFile(dir.File("scratch/f"), "x").ok());
    EXPECT_TRUE(Fails(SyncDirectory(dir.File("scratch")),
                      absl::StatusCode::kPermissionDenied, {"EACCES"}))
        << "or this shows nothing";
  }
  fs::permissions(dir.File("scratch"), fs::perms::all);
  EXPECT_TRUE(fs::is_directory(dir.File("scratch/us/c")));
}

TEST(Directory, WhatWasMadeSurvivesAPowerLoss) {
  TempDir dir;
  const std::string root = fs::canonical(dir.path());
  fs::create_directory(root + "/there");
  DiskRecording recording(root);
  ASSERT_TRUE(MakeDirectories(root + "/there/a/b/c").ok());
  ASSERT_TRUE(RenameDurably(root + "/there/a", root + "/there/z").ok());
  recording.EachOutcome([&](const CrashOutcome& crash) {
    EXPECT_TRUE(!crash.returned || fs::exists(crash.root + "/there/z/b/c"))
        << crash.after;
  });
}

}  // namespace
}  // namespace troupe
