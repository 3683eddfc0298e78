#include "proto/base/file_text.h"

#include <filesystem>
#include <fstream>

#include "absl/strings/match.h"
#include "gtest/gtest.h"

namespace troupe {
namespace {

TEST(FileText, IsAllOfAFile) {
  const std::string path = testing::TempDir() + "/text";
  const std::string text =
      std::string(50'000, 'x') + "\n" + std::string(1, '\0');
  std::ofstream(path, std::ios::binary) << text;
  EXPECT_EQ(FileText(path), text);
  std::ofstream(path, std::ios::binary | std::ios::trunc) << "";
  EXPECT_EQ(FileText(path), "");
}

TEST(FileText, EndsAtTheBound) {
  const std::string path = testing::TempDir() + "/long";
  std::ofstream(path) << std::string(40'000, 'y');
  EXPECT_EQ(FileText(path, 17'000), std::string(17'000, 'y'));
  EXPECT_EQ(FileText(path, 40'001), std::string(40'000, 'y'));
}

TEST(FileText, ReadsWhatTheKernelWrites) {
  const absl::optional<std::string> meminfo = FileText("/proc/meminfo");
  ASSERT_TRUE(meminfo.has_value());
  EXPECT_TRUE(absl::StrContains(*meminfo, "MemTotal"));
}

TEST(FileText, IsNoneWhereThereIsNoFile) {
  EXPECT_EQ(FileText(testing::TempDir() + "/nothing"), absl::nullopt);
  EXPECT_EQ(FileText(testing::TempDir()), absl::nullopt);
}

}  // namespace
}  // namespace troupe
