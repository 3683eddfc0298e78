#include "clients/cli/write_file.h"

#include <signal.h>
#include <sys/resource.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "gtest/gtest.h"

namespace troupe {
namespace {

TEST(WriteFile, Replaces) {
  const std::string path = std::filesystem::path(testing::TempDir()) / "file";
  ASSERT_TRUE(WriteFile({.path = path, .content = "longer"}).ok());
  ASSERT_TRUE(WriteFile({.path = path, .content = "new"}).ok());
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  EXPECT_EQ(text.str(), "new");
}

// As on a full disk.
TEST(WriteFile, WhatWasThereStaysWhereThereIsNoRoom) {
  const std::string path = std::filesystem::path(testing::TempDir()) / "kept";
  ASSERT_TRUE(WriteFile({.path = path, .content = "old"}).ok());
  struct rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const struct rlimit small = {.rlim_cur = 10, .rlim_max = before.rlim_max};
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const absl::Status status =
      WriteFile({.path = path, .content = std::string(1000, 'x')});
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  signal(SIGXFSZ, handler);
  EXPECT_EQ(status.message().find("cannot write"), 0u) << status;
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  EXPECT_EQ(text.str(), "old");
}

TEST(WriteFile, WritesToWhatIsNoFile) {
  EXPECT_TRUE(WriteFile({.path = "/dev/null", .content = "x"}).ok());
}

TEST(WriteFile, SaysWhyNot) {
  EXPECT_EQ(WriteFile({.path = "/no/such/file", .content = ""}).message(),
            "cannot write /no/such/file: No such file or directory");
}

}  // namespace
}  // namespace troupe
