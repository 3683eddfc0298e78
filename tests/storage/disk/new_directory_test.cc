#include "storage/disk/new_directory.h"

#include <filesystem>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/barrier.h"
#include "gtest/gtest.h"
#include "storage/disk/directory.h"
#include "storage/disk/new_file.h"
#include "tests/storage/disk/power_loss.h"
#include "tests/storage/temp_dir.h"

namespace troupe {
namespace {

namespace fs = std::filesystem;

// A directory of two files, one of them deeper, both of this text.
absl::Status Fill(const std::string& path, const std::string& text) {
  absl::Status status = MakeDirectories(path + "/deep");
  status.Update(ReplaceFile(path + "/f", text));
  status.Update(ReplaceFile(path + "/deep/f", text));
  return status;
}

// The text that both have; "torn" where they are not so.
std::string TextIn(const std::string& path) {
  const std::string text = ReadText(path + "/f");
  return !text.empty() && ReadText(path + "/deep/f") == text ? text : "torn";
}

absl::Status Publish(const std::string& path, const std::string& text) {
  const NewDirectory made(path, "t");
  absl::Status status = made.Make();
  status.Update(Fill(made.aside(), text));
  if (status.ok()) status = made.PublishOrReplace();
  return status;
}

TEST(NewDirectory, TheNameAppearsWithAllThatIsInIt) {
  TempDir dir;
  const NewDirectory made(dir.File("new/d") + "/", "job-1");
  EXPECT_EQ(made.path(), dir.File("new/d"));
  EXPECT_EQ(made.aside(), dir.File("new/d.tmp-job-1"));
  ASSERT_TRUE(made.Make().ok());
  ASSERT_TRUE(made.Make().ok());  // another rank's
  ASSERT_TRUE(Fill(made.aside(), "x").ok());
  EXPECT_FALSE(fs::exists(made.path()));
  fs::create_directory(made.path());  // an empty one is no other
  ASSERT_TRUE(made.Publish().ok());
  EXPECT_EQ(TextIn(made.path()), "x");
  EXPECT_FALSE(fs::exists(made.aside()));
  ASSERT_TRUE(made.Make().ok());
  ASSERT_TRUE(Fill(made.aside(), "another").ok());
  EXPECT_TRUE(
      Fails(made.Publish(), absl::StatusCode::kAlreadyExists, {made.path()}));
  EXPECT_EQ(TextIn(made.path()), "x");
  EXPECT_TRUE(made.Discard().ok());
}

TEST(NewDirectory, DiscardsWhatIsAside) {
  TempDir dir;
  const NewDirectory made(dir.File("d"), "t");
  ASSERT_TRUE(made.Make().ok());
  ASSERT_TRUE(Fill(made.aside(), "x").ok());
  ASSERT_TRUE(made.Discard().ok());
  EXPECT_TRUE(fs::is_empty(dir.path()));
}

// One publishes what another gives up: either of them has it whole.
TEST(NewDirectory, IsPublishedOrDiscardedWhole) {
  TempDir dir;
  const NewDirectory made(dir.File("d"), "t");
  constexpr int kFiles = 50;
  for (int round = 0; round < 50; ++round) {
    fs::create_directory(made.aside());
    for (int i = 0; i < kFiles; ++i) {
      WriteText(absl::StrCat(made.aside(), "/", i), "x");
    }
    absl::Barrier both(2);
    std::thread other([&] {
      both.Block();
      EXPECT_TRUE(made.Discard().ok());
    });
    both.Block();
    const absl::Status published = RenameDurably(made.aside(), made.path());
    other.join();
    EXPECT_EQ(fs::exists(made.path()), published.ok()) << published;
    if (published.ok()) {
      const auto files = std::distance(fs::directory_iterator(made.path()), {});
      ASSERT_EQ(files, kFiles) << round;
    }
    fs::remove_all(made.path());
    EXPECT_TRUE(fs::is_empty(dir.path())) << round;
  }
}

TEST(NewDirectory, DiscardsWhereACrashLeftAPart) {
  TempDir dir;
  const NewDirectory made(dir.File("d"), "t");
  ASSERT_TRUE(Fill(made.aside() + ".tmp-removed", "left").ok());
  ASSERT_TRUE(made.Make().ok());
  ASSERT_TRUE(Fill(made.aside(), "x").ok());
  ASSERT_TRUE(made.Discard().ok());
  EXPECT_TRUE(fs::is_empty(dir.path()));
}

TEST(NewDirectory, TakesThePlaceOfAnother) {
  for (const bool refuse : {false, true}) {
    TempDir dir;
    const std::string root = fs::canonical(dir.path());
    DiskRecording recording(root, {.refuse_rename_flags = refuse});
    ASSERT_TRUE(Publish(root + "/d", "old").ok());
    const absl::Status published = Publish(root + "/d", "new");
    ASSERT_TRUE(published.ok()) << published;
    EXPECT_EQ(TextIn(root + "/d"), "new");
    // That the other cannot be removed is no reason not to have published.
    EXPECT_EQ(TextIn(root + "/d.tmp-t"), "old");
    ASSERT_TRUE(NewDirectory(root + "/d", "t").Discard().ok());
    EXPECT_EQ(std::distance(fs::directory_iterator(root), {}), 1);
  }
}

TEST(NewDirectory, SurvivesAPowerLoss) {
  for (const bool refuse : {false, true}) {
    for (const bool there : {false, true}) {
      TempDir dir;
      const std::string root = fs::canonical(dir.path());
      const std::string path = "/new/d";
      if (there) {
        ASSERT_TRUE(Publish(root + path, "old").ok());
      }
      DiskRecording recording(root, {.refuse_rename_flags = refuse});
      const absl::Status published = Publish(root + path, "new");
      ASSERT_TRUE(published.ok()) << published;
      const int outcomes =
          recording.EachOutcome([&](const CrashOutcome& crash) {
            const std::string found = PresentPath(crash.root + path);
            if (TextIn(found) == "new") return;
            EXPECT_FALSE(crash.returned) << crash.after;
            if (there) {
              EXPECT_EQ(TextIn(found), "old") << crash.after;
            } else {
              EXPECT_FALSE(fs::exists(found)) << crash.after;
            }
          });
      EXPECT_GE(outcomes, 15);
    }
  }
}

// The machine went down between the two renames; then another one is published.
TEST(NewDirectory, GoesOnFromHalfAReplacement) {
  TempDir dir;
  const std::string root = fs::canonical(dir.path());
  ASSERT_TRUE(Publish(root + "/d.replaced", "old").ok());
  EXPECT_EQ(PresentPath(root + "/d"), root + "/d.replaced");
  DiskRecording recording(root, {.refuse_rename_flags = true});
  ASSERT_TRUE(Publish(root + "/d", "new").ok());
  EXPECT_EQ(PresentPath(root + "/d/"), root + "/d");
  EXPECT_FALSE(fs::exists(root + "/d.replaced"));
  recording.EachOutcome([&](const CrashOutcome& crash) {
    const std::string text = TextIn(PresentPath(crash.root + "/d"));
    EXPECT_TRUE(text == "new" || (text == "old" && !crash.returned))
        << text << " " << crash.after;
  });
}

TEST(NewDirectory, IsRemovedWholeOrNotAtAll) {
  TempDir dir;
  const std::string root = fs::canonical(dir.path());
  ASSERT_TRUE(Publish(root + "/d", "x").ok());
  ASSERT_TRUE(Publish(root + "/d.tmp-removed", "left by a crash").ok());
  DiskRecording recording(root);
  std::vector<std::string> trees;
  ASSERT_TRUE(TakeNames({root + "/d", root + "/none"}, trees).ok());
  ASSERT_EQ(trees, std::vector<std::string>{root + "/d.tmp-removed"});
  ASSERT_TRUE(RemoveTree(trees[0]).ok());
  recording.EachOutcome([&](const CrashOutcome& crash) {
    const std::string path = crash.root + "/d";
    EXPECT_TRUE(!fs::exists(path) || TextIn(path) == "x") << crash.after;
    EXPECT_FALSE(crash.returned && fs::exists(path)) << crash.after;
  });
}

}  // namespace
}  // namespace troupe
