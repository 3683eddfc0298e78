#include "storage/checkpoint/checkpoint_folder.h"

#include <filesystem>
#include <optional>

#include "gtest/gtest.h"
#include "storage/checkpoint/checkpoint_dir.h"
#include "tests/storage/checkpoint/small_checkpoint.h"
#include "tests/storage/disk/power_loss.h"
#include "tests/storage/temp_dir.h"

namespace troupe {
namespace {

namespace fs = std::filesystem;
constexpr auto kRefused = absl::StatusCode::kFailedPrecondition;

TEST(CheckpointFolder, OneHolderWhateverNameLeadsThere) {
  TempDir dir;
  const std::string path = dir.File("c");
  auto first = CheckpointFolder::Open({.directory = path, .holder = "job 3"});
  ASSERT_TRUE(first.ok()) << first.status();
  fs::create_directory_symlink(path, dir.File("link"));
  for (const std::string& name :
       {path, path + "/", path + "/./", dir.File("link")}) {
    EXPECT_TRUE(Fails(
        CheckpointFolder::Open({.directory = name, .holder = "job 4"}).status(),
        kRefused,
        {name + ": job 3 writes its checkpoints there", "another directory"}));
  }
  first->reset();
  EXPECT_TRUE(
      CheckpointFolder::Open({.directory = path, .holder = "job 4"}).ok());
}

TEST(CheckpointFolder, OneThatGoesOnOnAFullDiskIsHeldWhenThereIsRoom) {
  TempDir dir;
  const std::string path = dir.File("c");
  const CheckpointFolderOptions goes_on = {
      .directory = path, .holder = "job 3", .outlasts_full_disk = true};
  std::optional<FullDisk> full(dir.path());
  EXPECT_TRUE(Fails(
      CheckpointFolder::Open({.directory = path, .holder = "job 3"}).status(),
      absl::StatusCode::kResourceExhausted, {path, "ENOSPC"}));
  const auto folder = CheckpointFolder::Open(goes_on);
  ASSERT_TRUE(folder.ok()) << folder.status();
  for (const absl::Status& status :
       {(*folder)->held(), (*folder)->Hold(), (*folder)->CheckHeld()}) {
    EXPECT_TRUE(
        Fails(status, absl::StatusCode::kResourceExhausted, {path, "ENOSPC"}));
  }
  EXPECT_TRUE(fs::is_empty(path)) << "no lock without a holder, and no probe";
  full.reset();
  {
    const auto other =
        CheckpointFolder::Open({.directory = path, .holder = "job 4"});
    ASSERT_TRUE(other.ok()) << other.status();
    EXPECT_TRUE(Fails((*folder)->Hold(), kRefused, {"job 4 writes"}));
  }
  EXPECT_TRUE((*folder)->Hold().ok());
  EXPECT_TRUE((*folder)->CheckHeld().ok());
  EXPECT_TRUE(Fails(
      CheckpointFolder::Open({.directory = path, .holder = "job 4"}).status(),
      kRefused, {"job 3 writes"}));
  EXPECT_TRUE((*folder)->Hold().ok()) << "it is held already";
}

TEST(CheckpointFolder, ARunThatStartsAnewTakesNobodysPlaceUnasked) {
  TempDir dir;
  const CheckpointFolderOptions anew = {
      .directory = dir.path(), .holder = "job 3", .starts_anew = true};
  EXPECT_TRUE(CheckpointFolder::Open(anew).ok());
  const std::string old = SaveSmall({dir.path(), 50, "a"}, 1);
  EXPECT_TRUE(
      Fails(CheckpointFolder::Open(anew).status(), kRefused,
            {dir.path(), "left 1 checkpoint", old, "checkpoint.resume: latest",
             "another directory", "checkpoint.overwrite: true"}));
  EXPECT_TRUE(
      CheckpointFolder::Open({.directory = dir.path(), .holder = "job 3"}).ok())
      << "one that goes on from it";
}

TEST(CheckpointFolder, ARunGoesOnWhereItsCheckpointLies) {
  TempDir dir;
  const std::string here = dir.File("here");
  const std::string checkpoint = SaveSmall({here, 50, "a"}, 1);
  const std::string elsewhere = SaveSmall({dir.File("there"), 50, "a"}, 1);
  fs::create_directory_symlink(here, dir.File("link"));
  fs::create_directory_symlink(checkpoint, dir.File("link-to-50"));
  fs::create_directory_symlink(elsewhere, here + "/step-00000060");
  const std::string below = SaveSmall({here + "/keep", 50, "a"}, 1);
  fs::create_directory(dir.File("links"));
  fs::create_directory_symlink(checkpoint, dir.File("links/step-00000050"));
  for (const std::string& resume :
       {std::string("latest"), std::string("auto"), here, here + "/",
        checkpoint, checkpoint + "/", checkpoint + "/.", dir.File("link"),
        dir.File("link/step-00000050"), dir.File("link-to-50"),
        here + "/step-00000060"}) {
    EXPECT_TRUE(GoesOnIn(here, resume)) << resume;
    EXPECT_TRUE(GoesOnIn(dir.File("link/"), resume)) << resume;
  }
  for (const std::string& resume :
       {std::string(), elsewhere, dir.File("there"), dir.path(),
        dir.File("none"), below, here + "/keep", here + "/keep/",
        dir.File("links")}) {
    EXPECT_FALSE(GoesOnIn(here, resume)) << resume;
  }
  EXPECT_FALSE(GoesOnIn(dir.File("not-made-yet"), checkpoint));
}

TEST(CheckpointFolder, WhatIsOverwrittenGoesWithTheFirstCheckpoint) {
  TempDir dir;
  for (const int64_t step : {10, 20, 30}) SaveSmall({dir.path(), step, "a"}, 1);
  auto folder = CheckpointFolder::Open({.directory = dir.path(),
                                        .holder = "job 3",
                                        .starts_anew = true,
                                        .overwrite = true});
  ASSERT_TRUE(folder.ok()) << folder.status();
  EXPECT_EQ(ListCheckpoints(dir.path())->size(), 3u);
  std::vector<std::string> trees;
  ASSERT_TRUE(
      (*folder)->Committed(SaveSmall({dir.path(), 20, "b"}, 1), trees).ok());
  EXPECT_EQ(ListCheckpoints(dir.path())->size(), 1u);
  EXPECT_TRUE(fs::exists(dir.File("step-00000020")));
  // All have lost their names before any is removed: `latest` is this run's
  // whenever that ends.
  EXPECT_EQ(trees,
            (std::vector<std::string>{dir.File("step-00000030.tmp-removed"),
                                      dir.File("step-00000010.tmp-removed")}));
  for (const std::string& tree : trees) {
    EXPECT_TRUE(fs::exists(tree + "/manifest.json")) << tree;
  }
  ASSERT_TRUE(
      (*folder)->Committed(SaveSmall({dir.path(), 30, "b"}, 1), trees).ok());
  EXPECT_EQ(ListCheckpoints(dir.path())->size(), 2u);
  EXPECT_EQ(trees.size(), 2u);
}

TEST(CheckpointFolder, ACheckpointThatKeepsItsNameIsNamed) {
  TempDir dir;
  for (const int64_t step : {10, 20, 30}) SaveSmall({dir.path(), step, "a"}, 1);
  auto folder = CheckpointFolder::Open({.directory = dir.path(),
                                        .holder = "job 3",
                                        .starts_anew = true,
                                        .overwrite = true});
  ASSERT_TRUE(folder.ok()) << folder.status();
  WriteText(dir.File("step-00000030.tmp-removed"), "in the way");
  std::vector<std::string> trees;
  EXPECT_TRUE(Fails(
      (*folder)->Committed(SaveSmall({dir.path(), 5, "b"}, 1), trees), kRefused,
      {"checkpoint.overwrite", dir.File("step-00000030"), "ENOTDIR"}));
  EXPECT_EQ(trees.size(), 2u) << "the others go";
  EXPECT_TRUE((*folder)->has_left());

  // The next one tries again. What took a name of those that went, stays.
  const std::string own = SaveSmall({dir.path(), 10, "b"}, 1);
  EXPECT_FALSE((*folder)->Committed(own, trees).ok());
  EXPECT_TRUE(fs::exists(own));
  fs::remove(dir.File("step-00000030.tmp-removed"));
  EXPECT_TRUE((*folder)->RetryOverwritten(trees).ok());
  EXPECT_FALSE((*folder)->has_left());
  EXPECT_EQ(trees.back(), dir.File("step-00000030.tmp-removed"));
  EXPECT_EQ(ListCheckpoints(dir.path())->size(), 2u) << "of steps 5 and 10";
}

// A stopped process does not notice until it asks.
TEST(CheckpointFolder, WhoseItIsIsAskedBeforeANameIsGiven) {
  TempDir dir;
  const auto first = CheckpointFolder::Open(
      {.directory = dir.path(), .holder = "job a (job-3-1)"});
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_TRUE((*first)->CheckHeld().ok());
  auto second = CheckpointFolder::Open({.directory = dir.path(),
                                        .holder = "job a (job-3-2)",
                                        .supersedes = "job a (job-3-"});
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_TRUE((*second)->CheckHeld().ok());
  EXPECT_TRUE(Fails((*first)->CheckHeld(), kRefused,
                    {dir.path(), "a later attempt of this job"}));
  second->reset();
  fs::remove(dir.File(".lock"));
  EXPECT_TRUE((*first)->CheckHeld().ok()) << "nobody else has it";
}

// Its first checkpoint was there, and it died before it could remove the
// others.
TEST(CheckpointFolder, WhoGoesOnFromItsOwnOverwritesWhatIsBeyond) {
  TempDir dir;
  for (const int64_t step : {10, 20, 30, 40}) {
    SaveSmall({dir.path(), step, "a"}, 1);
  }
  CheckpointFolderOptions options = {.directory = dir.path(),
                                     .holder = "job 3",
                                     .overwrite = true,
                                     .goes_on_from = dir.File("step-00000020")};
  auto folder = CheckpointFolder::Open(options);
  ASSERT_TRUE(folder.ok()) << folder.status();
  std::vector<std::string> trees;
  ASSERT_TRUE((*folder)->Committed(options.goes_on_from, trees).ok());
  EXPECT_EQ(trees,
            (std::vector<std::string>{dir.File("step-00000040.tmp-removed"),
                                      dir.File("step-00000030.tmp-removed")}));
  folder->reset();
  trees.clear();
  options.goes_on_from = dir.File("step-00000030");  // is not there any more
  folder = CheckpointFolder::Open(options);
  ASSERT_TRUE(folder.ok()) << folder.status();
  ASSERT_TRUE((*folder)->Committed(options.goes_on_from, trees).ok());
  EXPECT_TRUE(trees.empty());
}

}  // namespace
}  // namespace troupe
