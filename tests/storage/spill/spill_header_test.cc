#include "storage/spill/spill_header.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "storage/disk/file_lock.h"

namespace troupe {
namespace {

TEST(SpillHeader, SaysWhoseItIs) {
  const std::string header =
      SpillHeader({.cluster = "10.0.0.1:7777", .job = "gpt", .rank = 3});
  const std::string begin = absl::StrCat(
      "troupe spill file 1: cluster 10.0.0.1:7777, job gpt, rank 3, ",
      ThisProcessName(), ", crc32c ");
  EXPECT_TRUE(absl::StartsWith(header, begin)) << header;
  EXPECT_TRUE(IsSpillHeader(header));
  EXPECT_TRUE(IsSpillHeader(absl::StrCat(header, "\n", std::string(9, '\0'))));
}

TEST(SpillHeader, StaysOneLineWhateverTheNameIs) {
  const std::string header =
      SpillHeader({.cluster = absl::StrCat("a\nb", std::string(9000, 'x')),
                   .job = std::string(9000, '\n')});
  EXPECT_LT(header.size(), 500u);
  EXPECT_EQ(header.find('\n'), std::string::npos);
  EXPECT_TRUE(IsSpillHeader(header));
}

TEST(SpillHeader, IsNotWhatSomebodyChanged) {
  const std::string header = SpillHeader({.cluster = "c", .job = "gpt"});
  for (size_t i = 0; i < header.size(); ++i) {
    std::string changed = header;
    changed[i] ^= 1;
    EXPECT_FALSE(IsSpillHeader(changed)) << changed;
    EXPECT_FALSE(IsSpillHeader(header.substr(0, i)));
  }
  EXPECT_FALSE(IsSpillHeader(std::string(4096, '\0')));
}

TEST(SpillName, IsKnownAgain) {
  const std::string path = NewSpillPath("/nvme");
  EXPECT_TRUE(absl::StartsWith(path, "/nvme/troupe-spill-")) << path;
  EXPECT_NE(path, NewSpillPath("/nvme"));
  EXPECT_TRUE(IsSpillName(path.substr(6)));
  for (const char* other :
       {"", "troupe-spill-", "troupe-spill-0123456", "troupe-spill-012345678",
        "troupe-spill-0123456g", "my-troupe-spill-01234567"}) {
    EXPECT_FALSE(IsSpillName(other)) << other;
  }
}

}  // namespace
}  // namespace troupe
