#include "proto/trust/secret.h"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/escaping.h"
#include "gtest/gtest.h"
#include "proto/trust/keyed_hash.h"

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

// RFC 4231, 4.3.
TEST(Secret, AKeyedHashIsHmacWithSha256) {
  EXPECT_EQ(absl::BytesToHexString(
                KeyedHash("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c7"
            "5a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(NewNonce(7).size(), 7u);
  EXPECT_NE(NewNonce(32), NewNonce(32));
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
