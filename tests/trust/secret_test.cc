#include "trust/secret.h"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "gtest/gtest.h"

namespace troupe {
namespace {

TEST(Secret, NoTwoAreTheSame) {
  EXPECT_EQ(NewSecret().size(), 64u);
  EXPECT_NE(NewSecret(), NewSecret());
}

TEST(Secret, IsTheSameToTheLastByte) {
  EXPECT_TRUE(SameSecret("abc", "abc"));
  for (const char* other : {"", "ab", "abcd", "abd", "bbc"}) {
    EXPECT_FALSE(SameSecret("abc", other)) << other;
  }
}

TEST(Secret, AFileKeepsItAndOnlyItsOwnerReadsIt) {
  const std::string dir = testing::TempDir() + "/secret";
  std::filesystem::remove_all(dir);
  const std::string path = dir + "/token";
  const std::string secret = EnsureSecretFile(path).value();
  EXPECT_EQ(EnsureSecretFile(path).value(), secret);
  struct stat info = {};
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  std::ofstream(path) << "short\n";
  EXPECT_TRUE(absl::IsDataLoss(EnsureSecretFile(path).status()));
  chmod(path.c_str(), 0644);
  EXPECT_TRUE(absl::IsFailedPrecondition(EnsureSecretFile(path).status()));
}

}  // namespace
}  // namespace troupe
