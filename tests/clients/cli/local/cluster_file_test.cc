#include "clients/cli/local/cluster_file.h"

#include <filesystem>
#include <fstream>

#include "gtest/gtest.h"

namespace troupe {
namespace {

TEST(ClusterFile, IsReadBack) {
  const std::string dir = testing::TempDir();
  RemoveClusterFile(dir);
  EXPECT_TRUE(ReadClusterFile(dir).value().empty());
  const std::vector<ClusterMember> members = {
      {"scheduler", {.pid = 7, .start_ticks = 77}},
      {"worker-0", {.pid = 8, .start_ticks = ~uint64_t{0}}}};
  ASSERT_TRUE(WriteClusterFile(dir, members).ok());
  EXPECT_EQ(ReadClusterFile(dir).value(), members);
  RemoveClusterFile(dir);
  EXPECT_TRUE(ReadClusterFile(dir).value().empty());
  EXPECT_FALSE(WriteClusterFile("/no/such", members).ok());
}

TEST(ClusterFile, RefusesWhatIsNotOurs) {
  const std::filesystem::path dir = testing::TempDir();
  for (const char* text : {"", "{}", "[1]", "[{\"name\": \"x\"}]",
                           "[{\"name\": 1, \"pid\": 2, \"start_ticks\": 3}]"}) {
    std::ofstream(dir / kClusterFile) << text;
    EXPECT_EQ(ReadClusterFile(dir).status().code(), absl::StatusCode::kDataLoss)
        << text;
  }
  RemoveClusterFile(dir);
}

}  // namespace
}  // namespace troupe
