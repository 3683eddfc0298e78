#include "storage/disk/roots.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <functional>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "storage/disk/directory.h"
#include "storage/disk/file_lock.h"
#include "storage/disk/new_directory.h"
#include "storage/disk/new_file.h"
#include "storage/disk/path_calls.h"
#include "tests/storage/temp_dir.h"

namespace troupe {
namespace {

namespace fs = std::filesystem;
using absl::StatusCode;

TEST(Roots, AreNamedInPaths) {
  EXPECT_EQ(RootName("data:a/b"), "data");
  EXPECT_EQ(RootName("my-data_2:"), "my-data_2");
  for (const char* path : {"", "/a", "a/b", "./data:a", ":a", "2d:a", "a b:c",
                           "../data:a", "/data:a"}) {
    EXPECT_EQ(RootName(path), "") << path;
  }
}

TEST(Roots, RefusesFlagsThatAreNone) {
  TempDir dir;
  for (const std::string& flag :
       {std::string("data"), std::string("=/tmp"), std::string("data="),
        std::string("a/b=/tmp"), std::string("1=/tmp")}) {
    EXPECT_TRUE(Fails(Roots::Install({flag}).status(),
                      StatusCode::kInvalidArgument, {"--root", flag}));
  }
  EXPECT_TRUE(
      Fails(Roots::Install({"a=" + dir.path(), "a=" + dir.path()}).status(),
            StatusCode::kInvalidArgument, {"two of the name a"}));
  EXPECT_TRUE(Fails(Roots::Install({"a=" + dir.File("no")}).status(),
                    StatusCode::kNotFound, {"--root a", dir.File("no")}));
  WriteText(dir.File("f"), "");
  EXPECT_TRUE(Fails(Roots::Install({"a=" + dir.File("f")}).status(),
                    StatusCode::kFailedPrecondition, {"ENOTDIR"}));
  // Nothing is left installed by those.
  EXPECT_FALSE(PathBelowRoot::Of("a:x").has_value());
}

TEST(Roots, SayWhatAJobMayName) {
  EXPECT_TRUE(CheckJobPath("data.tokens", "/anywhere").ok());
  EXPECT_TRUE(Fails(CheckJobPath("data.tokens", "data:x"),
                    StatusCode::kInvalidArgument,
                    {"data.tokens: data:x", "--root data=DIR"}));
  TempDir dir;
  const auto roots = Roots::Install({"data=" + dir.path(), "b=/proc"}).value();
  EXPECT_EQ(roots->Names(), "data, b");
  EXPECT_TRUE(CheckJobPath("data.tokens", "data:x").ok());
  EXPECT_TRUE(CheckJobPath("model.hf", "").ok());
  for (const std::string& path : {std::string("/etc/passwd"), std::string("x"),
                                  std::string("./data:x"), dir.File("x")}) {
    EXPECT_TRUE(Fails(CheckJobPath("data.tokens", path),
                      StatusCode::kPermissionDenied,
                      {"data.tokens: " + path, "(data, b)", "ROOT:path"}));
  }
  EXPECT_TRUE(Fails(CheckJobPath("data.tokens", "other:x"),
                    StatusCode::kInvalidArgument,
                    {"no root other", "data, b"}));
}

TEST(Roots, AreToBeSaidToWhoReadsHere) {
  EXPECT_TRUE(CheckReadableHere("model.hf", "/m").ok());
  EXPECT_TRUE(Fails(CheckReadableHere("model.hf", "data:m"),
                    StatusCode::kFailedPrecondition, {"--root data=DIR"}));
  TempDir dir;
  const auto roots = Roots::Install({"data=" + dir.path()}).value();
  EXPECT_TRUE(CheckReadableHere("model.hf", "data:m").ok());
}

// A root with something in it, and beside it files that no path may reach.
class BelowRoot : public testing::Test {
 protected:
  BelowRoot() {
    fs::create_directories(dir_.File("root/in"));
    fs::create_directory(dir_.File("out"));
    WriteText(dir_.File("out/secret"), "secret");
    roots_ = Roots::Install({"data=" + dir_.File("root")}).value();
  }

  TempDir dir_;
  std::unique_ptr<Roots> roots_;
};

TEST_F(BelowRoot, DoesWhatDiskDoes) {
  ASSERT_TRUE(MakeDirectories("data:a/b/c").ok());
  ASSERT_TRUE(MakeDirectories("data:").ok());
  ASSERT_TRUE(ReplaceFile("data:a/f", "one").ok());
  ASSERT_TRUE(ReplaceFile("data:a/f", "text").ok());
  EXPECT_EQ(ReadText(dir_.File("root/a/f")), "text");
  const NewDirectory made("data:runs/step-1", "t");
  ASSERT_TRUE(made.Make().ok());
  ASSERT_TRUE(ReplaceFile(made.aside() + "/g", "1").ok());
  ASSERT_TRUE(made.Publish().ok());
  const NewDirectory other("data:runs/step-1", "u");
  ASSERT_TRUE(other.Make().ok());
  ASSERT_TRUE(ReplaceFile(other.aside() + "/g", "22").ok());
  ASSERT_TRUE(other.PublishOrReplace().ok());
  EXPECT_EQ(ReadText(dir_.File("root/runs/step-1/g")), "22");
  EXPECT_EQ(TreeBytes("data:runs/step-1"), 2u);
  {
    const auto lock = FileLock::Take("data:runs/.lock", "me");
    ASSERT_TRUE(lock.ok()) << lock.status();
    EXPECT_TRUE(FileLock::IsHeld("data:runs/.lock"));
    EXPECT_TRUE(Fails(FileLock::Take("data:runs/.lock", "you").status(),
                      StatusCode::kFailedPrecondition, {"me"}));
  }
  EXPECT_FALSE(fs::exists(dir_.File("root/runs/.lock")));
  std::vector<std::string> trees;
  ASSERT_TRUE(TakeNames({"data:runs/step-1"}, trees).ok());
  ASSERT_EQ(trees.size(), 1u);
  for (const std::string& tree :
       {trees[0], other.aside(), std::string("data:a")}) {
    EXPECT_TRUE(RemoveTree(tree).ok()) << tree;
  }
  EXPECT_TRUE(fs::is_empty(dir_.File("root/runs")));
  EXPECT_FALSE(fs::exists(dir_.File("root/a")));
  EXPECT_EQ(ParentDirectory("data:a/b"), "data:a");
  EXPECT_EQ(ParentDirectory("data:a"), "data:");
  EXPECT_EQ(ParentDirectory("data:"), "data:");
}

TEST_F(BelowRoot, FollowsLinksThatStayThere) {
  WriteText(dir_.File("root/in/f"), "old");
  fs::create_symlink("in/f", dir_.File("root/link"));
  fs::create_symlink("../in", dir_.File("root/in/again"));
  ASSERT_TRUE(ReplaceFile("data:link", "new").ok());
  EXPECT_TRUE(fs::is_symlink(dir_.File("root/link")));
  EXPECT_EQ(ReadText(dir_.File("root/in/f")), "new");
  struct stat info;
  EXPECT_EQ(StatPath("data:in/again/../in/f", &info), 0);
  EXPECT_EQ(info.st_size, 3);
}

// The directory is held, not its name.
TEST_F(BelowRoot, StaysWhereItWasOpened) {
  fs::rename(dir_.File("root"), dir_.File("elsewhere"));
  fs::create_symlink(dir_.File("out"), dir_.File("root"));
  ASSERT_TRUE(ReplaceFile("data:f", "text").ok());
  EXPECT_EQ(ReadText(dir_.File("elsewhere/f")), "text");
  EXPECT_FALSE(fs::exists(dir_.File("out/f")));
}

// Every call, through every way out.
TEST_F(BelowRoot, RefusesWhatLeadsOut) {
  fs::create_symlink(dir_.File("out"), dir_.File("root/absolute"));
  fs::create_symlink("../out", dir_.File("root/relative"));
  fs::create_symlink("/proc/self/cwd", dir_.File("root/magic"));
  fs::create_symlink("absolute", dir_.File("root/in/two"));
  fs::create_symlink("../absolute", dir_.File("root/in/three"));
  struct stat info;
  std::string target;
  std::vector<std::string> names;
  const std::vector<std::pair<std::string, std::function<int(std::string)>>>
      calls = {
          {"open", [](std::string p) { return OpenPath(p, O_RDONLY); }},
          {"create",
           [](std::string p) { return OpenPath(p, O_RDWR | O_CREAT); }},
          {"stat", [&](std::string p) { return StatPath(p, &info); }},
          {"lstat", [&](std::string p) { return LstatPath(p, &info); }},
          {"mkdir", [](std::string p) { return MkdirPath(p, 0777); }},
          {"unlink", [](std::string p) { return UnlinkPath(p); }},
          {"rmdir", [](std::string p) { return RmdirPath(p); }},
          {"readlink", [&](std::string p) { return ReadlinkPath(p, target); }},
          {"list", [&](std::string p) { return ListPath(p, names); }},
          {"rename", [](std::string p) { return RenamePath("data:in", p); }},
          {"rename from",
           [](std::string p) { return RenamePath(p, "data:x"); }},
          {"exchange",
           [](std::string p) {
             return RenamePath("data:in", p, RENAME_EXCHANGE);
           }},
      };
  for (const char* way : {"..", "../out", "in/../../out", "absolute",
                          "relative", "magic", "in/three", "absolute/.."}) {
    for (const auto& [name, call] : calls) {
      const std::string path = std::string("data:") + way + "/secret";
      errno = 0;
      EXPECT_EQ(call(path), -1) << name << " " << path;
      EXPECT_TRUE(errno == EXDEV || errno == ELOOP)
          << name << " " << path << ": " << strerrorname_np(errno);
    }
  }
  for (const char* path : {"data:", "data:.", "data:in/.."}) {
    EXPECT_EQ(RmdirPath(path), -1) << path;
    EXPECT_EQ(RenamePath(path, "data:x"), -1) << path;
  }
  // At the end of the path, too.
  EXPECT_TRUE(Fails(ReplaceFile("data:absolute", "x"),
                    StatusCode::kFailedPrecondition, {"EXDEV", "its root"}));
  fs::create_symlink("../../out/secret", dir_.File("root/in/last"));
  fs::create_symlink(dir_.File("out/secret"), dir_.File("root/in/first"));
  for (const char* path : {"data:in/last", "data:in/first"}) {
    EXPECT_FALSE(ReplaceFile(path, "x").ok()) << path;
    EXPECT_EQ(OpenPath(path, O_RDONLY), -1) << path;
    EXPECT_EQ(OpenPath(path, O_RDWR | O_CREAT | O_TRUNC), -1) << path;
    EXPECT_FALSE(FileLock::Take(path, "x").ok()) << path;
  }
  // A link is removed, not what it leads to.
  EXPECT_TRUE(RemoveTree("data:absolute").ok());
  EXPECT_FALSE(fs::is_symlink(dir_.File("root/absolute")));
  EXPECT_EQ(ReadText(dir_.File("out/secret")), "secret");
  EXPECT_EQ(std::distance(fs::directory_iterator(dir_.File("out")), {}), 1);
}

// A link is put in the place of a directory, again and again, while files are
// made, replaced and removed in it.
TEST_F(BelowRoot, HoldsWhileLinksAreSwappedIn) {
  fs::create_symlink(dir_.File("out"), dir_.File("root/swap"));
  std::atomic<bool> done = false;
  std::thread swapper([&] {
    while (!done) {
      renameat2(AT_FDCWD, dir_.File("root/swap").c_str(), AT_FDCWD,
                dir_.File("root/in").c_str(), RENAME_EXCHANGE);
    }
  });
  int written = 0;
  int refused = 0;
  // On a busy machine the other thread may not run for a while, and each write
  // may take long: it ends well before the test's own limit of a minute.
  const absl::Time end = absl::Now() + absl::Seconds(10);
  while ((written < 200 || refused < 200) && absl::Now() < end) {
    const bool ok = ReplaceFile("data:in/f", "mine").ok();
    (ok ? written : refused) += 1;
    MakeDirectories("data:in/a/b").IgnoreError();
    RemoveTree("data:in/a").IgnoreError();
    RemoveTree("data:in/secret").IgnoreError();
  }
  done = true;
  swapper.join();
  EXPECT_GT(written, 0);
  EXPECT_GT(refused, 0);
  EXPECT_EQ(ReadText(dir_.File("out/secret")), "secret");
  EXPECT_EQ(std::distance(fs::directory_iterator(dir_.File("out")), {}), 1);
}

}  // namespace
}  // namespace troupe
