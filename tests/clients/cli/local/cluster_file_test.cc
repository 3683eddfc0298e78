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
  const absl::Status why = WriteClusterFile("/no/such", members);
  EXPECT_NE(why.message().find("ENOENT"), std::string::npos) << why;
}

TEST(ClusterFile, OfAnOlderBuildIsReadToo) {
  const std::filesystem::path dir = testing::TempDir();
  std::ofstream(dir / kClusterFile)
      << "[{\"name\": \"scheduler\", \"pid\": 7, \"start_ticks\": 77}]";
  const auto members = ReadClusterFile(dir);
  ASSERT_TRUE(members.ok()) << members.status();
  ASSERT_EQ(members->size(), 1u);
  EXPECT_EQ((*members)[0].process.start_ticks, 77u);
  RemoveClusterFile(dir);
}

// Its process ids mean nothing here.
TEST(ClusterFile, OfAnotherHostIsLeftAlone) {
  const std::filesystem::path dir = testing::TempDir();
  std::ofstream(dir / kClusterFile)
      << "{\"host\": \"no-such-host\", \"members\": []}";
  const absl::Status status = ReadClusterFile(dir).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(status.message().find("runs on no-such-host; run this command "
                                  "there"),
            std::string::npos)
      << status;
  RemoveClusterFile(dir);
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
