#include "clients/cli/write_file.h"

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

TEST(WriteFile, SaysWhyNot) {
  EXPECT_EQ(WriteFile({.path = "/no/such/file", .content = ""}).message(),
            "cannot write /no/such/file: No such file or directory");
}

}  // namespace
}  // namespace troupe
