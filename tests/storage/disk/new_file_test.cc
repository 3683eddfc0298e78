#include "storage/disk/new_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "gtest/gtest.h"
#include "tests/storage/disk/power_loss.h"
#include "tests/storage/temp_dir.h"

namespace troupe {
namespace {

namespace fs = std::filesystem;

int Names(const std::string& path) {
  return static_cast<int>(std::distance(fs::directory_iterator(path), {}));
}

TEST(NewFile, ReplacesOnlyWhenItIsCommitted) {
  TempDir dir;
  const std::string path = dir.File("f");
  WriteText(path, "old");
  {
    absl::StatusOr<NewFile> file = NewFile::Create(path);
    ASSERT_TRUE(file.ok()) << file.status();
    ASSERT_TRUE(file->WriteAt(4, "b").ok());
    ASSERT_TRUE(file->WriteAt(0, "aaaa").ok());
    EXPECT_EQ(ReadText(path), "old");
    NewFile moved = *std::move(file);
    ASSERT_TRUE(moved.Commit().ok());
    EXPECT_EQ(moved.path(), path);
  }
  EXPECT_EQ(ReadText(path), "aaaab");
  EXPECT_EQ(Names(dir.path()), 1);
  {
    absl::StatusOr<NewFile> given_up = NewFile::Create(path);
    ASSERT_TRUE(given_up.ok());
    EXPECT_EQ(Names(dir.path()), 2);
  }
  EXPECT_EQ(ReadText(path), "aaaab");
  EXPECT_EQ(Names(dir.path()), 1);
}

TEST(NewFile, KeepsLinksAndLeavesDevicesAlone) {
  TempDir dir;
  fs::create_directory(dir.File("d"));
  fs::create_symlink("d/real", dir.File("link"));
  ASSERT_TRUE(ReplaceFile(dir.File("link"), "text").ok());
  EXPECT_TRUE(fs::is_symlink(dir.File("link")));
  EXPECT_EQ(ReadText(dir.File("d/real")), "text");
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  EXPECT_TRUE(Fails(ReplaceFile("/dev/null", "x"), kInvalid,
                    {"/dev/null: is a device", "another name"}));
  EXPECT_TRUE(
      Fails(ReplaceFile(dir.File("d"), "x"), kInvalid, {"is a directory"}));
  ASSERT_EQ(mkfifo(dir.File("pipe").c_str(), 0600), 0);
  EXPECT_TRUE(
      Fails(ReplaceFile(dir.File("pipe"), "x"), kInvalid, {"is a pipe"}));
  fs::create_symlink("loop", dir.File("loop"));
  EXPECT_TRUE(Fails(ReplaceFile(dir.File("loop"), "x"),
                    absl::StatusCode::kFailedPrecondition, {"ELOOP"}));
}

TEST(NewFile, ErrorsNameTheFile) {
  TempDir dir;
  EXPECT_TRUE(Fails(ReplaceFile(dir.File("no/f"), "x"),
                    absl::StatusCode::kNotFound, {dir.File("no/f"), "ENOENT"}));
}

// A name that can be foretold is not followed, nor kept as open as it was.
TEST(NewFile, WritesIntoNoFileThatWasThere) {
  TempDir dir;
  const std::string aside = dir.File("f") + ".tmp-" + std::to_string(getpid());
  WriteText(dir.File("another"), "another's");
  fs::create_symlink(dir.File("another"), aside);
  ASSERT_TRUE(ReplaceFile(dir.File("f"), "text").ok());
  EXPECT_EQ(ReadText(dir.File("another")), "another's");
  WriteText(aside, "left by a process of this id");
  chmod(aside.c_str(), 0666);
  ASSERT_TRUE(ReplaceFile(dir.File("f"), "secret", 0600).ok());
  struct stat info;
  ASSERT_EQ(stat(dir.File("f").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  EXPECT_EQ(ReadText(dir.File("f")), "secret");
  fs::create_directory(aside);
  EXPECT_TRUE(Fails(ReplaceFile(dir.File("f"), "x"),
                    absl::StatusCode::kFailedPrecondition, {aside, "EISDIR"}));
}

// Old or new, whole, whenever the power goes; new once it has returned.
TEST(NewFile, SurvivesAPowerLoss) {
  for (const bool there : {true, false}) {
    TempDir dir;
    const std::string root = fs::canonical(dir.path());
    const std::string path = root + "/f";
    if (there) WriteText(path, "what was there before");
    DiskRecording recording(root);
    ASSERT_TRUE(ReplaceFile(path, "the new").ok());
    const int outcomes = recording.EachOutcome([&](const CrashOutcome& crash) {
      const std::string found = crash.root + "/f";
      if (ReadText(found) == "the new") return;
      EXPECT_FALSE(crash.returned) << crash.after;
      if (there) {
        EXPECT_EQ(ReadText(found), "what was there before") << crash.after;
      } else {
        EXPECT_FALSE(fs::exists(found)) << crash.after;
      }
    });
    EXPECT_GE(outcomes, 5);
  }
}

// The recording itself: what the usual omissions lose.
TEST(PowerLoss, FindsWhatIsNotSynced) {
  struct Omission {
    bool sync_file;
    bool sync_directory;
    bool torn;    // a part of the new file may be there
    bool undone;  // the old one may be there after all has returned
  };
  for (const Omission& omission :
       {Omission{false, true, true, false}, Omission{true, false, false, true},
        Omission{true, true, false, false}}) {
    TempDir dir;
    const std::string root = fs::canonical(dir.path());
    WriteText(root + "/f", "old");
    DiskRecording recording(root);
    const int fd = open((root + "/aside").c_str(), O_CREAT | O_WRONLY, 0600);
    ASSERT_EQ(pwrite(fd, "new!", 4, 0), 4);
    if (omission.sync_file) fsync(fd);
    close(fd);
    fs::rename(root + "/aside", root + "/f");
    const int directory = open(root.c_str(), O_RDONLY);
    if (omission.sync_directory) fsync(directory);
    close(directory);
    bool torn = false;
    bool undone = false;
    recording.EachOutcome([&](const CrashOutcome& crash) {
      const std::string text = ReadText(crash.root + "/f");
      torn = torn || (text != "old" && text != "new!");
      undone = undone || (crash.returned && text == "old");
    });
    EXPECT_EQ(torn, omission.torn);
    EXPECT_EQ(undone, omission.undone);
  }
}

}  // namespace
}  // namespace troupe
