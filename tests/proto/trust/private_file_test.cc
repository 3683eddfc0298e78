#include "proto/trust/private_file.h"

#include <sys/stat.h>

#include <filesystem>

#include "gtest/gtest.h"

namespace troupe {
namespace {

class PrivateFileTest : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::remove_all(dir_); }
  mode_t Mode(const std::string& path) const {
    struct stat info = {};
    EXPECT_EQ(stat(path.c_str(), &info), 0) << path;
    return info.st_mode & 0777;
  }
  const std::string dir_ = testing::TempDir() + "/private";
};

TEST_F(PrivateFileTest, OnlyItsOwnerReadsIt) {
  ASSERT_TRUE(MakePrivateDirectory(dir_ + "/a/b").ok());
  EXPECT_EQ(Mode(dir_ + "/a/b"), 0700u);
  const std::string path = dir_ + "/a/b/key";
  ASSERT_TRUE(WritePrivateFile(path, "secret").ok());
  EXPECT_EQ(Mode(path), 0600u);
  EXPECT_EQ(ReadPrivateFile(path).value(), "secret");
}

TEST_F(PrivateFileTest, ASecretThatEverybodyReadsIsNone) {
  ASSERT_TRUE(MakePrivateDirectory(dir_).ok());
  const std::string path = dir_ + "/key";
  ASSERT_TRUE(WritePrivateFile(path, "secret").ok());
  chmod(path.c_str(), 0644);
  EXPECT_TRUE(absl::IsFailedPrecondition(ReadPrivateFile(path).status()));
  EXPECT_EQ(ReadSmallFile(path).value(), "secret");
  ASSERT_TRUE(WritePrivateFile(path, "another").ok());
  EXPECT_EQ(ReadPrivateFile(path).value(), "another");
}

TEST_F(PrivateFileTest, ADirectoryThatIsOpenIsClosed) {
  std::filesystem::create_directories(dir_);
  chmod(dir_.c_str(), 0755);
  ASSERT_TRUE(MakePrivateDirectory(dir_).ok());
  EXPECT_EQ(Mode(dir_), 0700u);
}

TEST_F(PrivateFileTest, WhatIsNotThereIsNotFound) {
  EXPECT_TRUE(absl::IsNotFound(ReadPrivateFile(dir_ + "/none").status()));
}

}  // namespace
}  // namespace troupe
