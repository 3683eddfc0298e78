#include "clients/cli/local/cluster_file.h"

#include <filesystem>
#include <fstream>
#include <thread>

#include "gtest/gtest.h"
#include "storage/disk/file_lock.h"

namespace troupe {
namespace {

TEST(ClusterFile, IsReadBack) {
  const std::string dir = testing::TempDir();
  std::filesystem::remove(std::filesystem::path(dir) / kClusterFile);
  EXPECT_TRUE(ReadClusterFile(dir).value().empty());
  const std::vector<ClusterMember> members = {
      {"scheduler", {.pid = 7, .start_ticks = 77}, {}},
      {"worker-0",
       {.pid = 8, .start_ticks = ~uint64_t{0}},
       {.threads = 3,
        .device_memory = "1GiB",
        .host_memory = "77",
        .nvme = "/nvme",
        .nvme_size = "5GiB",
         .roots = {"data=/mnt/data", "runs=/mnt/runs"},
         .gpu = true},
        "127.0.0.1:4321",
        true}};
  const auto write = [&](std::vector<ClusterMember>& there) {
    EXPECT_TRUE(there.empty());
    there = members;
  };
  ASSERT_TRUE(ChangeClusterFile(dir, write).ok());
  EXPECT_EQ(ReadClusterFile(dir).value(), members);
  ASSERT_TRUE(ChangeClusterFile(dir, [&](std::vector<ClusterMember>& there) {
                EXPECT_EQ(there, members);
                there.clear();
              }).ok());
  EXPECT_FALSE(
      std::filesystem::exists(std::filesystem::path(dir) / kClusterFile));
  const absl::Status why = ChangeClusterFile("/no/such", write);
  EXPECT_NE(why.message().find("ENOENT"), std::string::npos) << why;
}

TEST(ClusterFile, LosesNoChange) {
  const std::string dir = testing::TempDir();
  constexpr int kThreads = 4;
  constexpr int kChanges = 10;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&dir] {
      for (int change = 0; change < kChanges; ++change) {
        EXPECT_TRUE(
            ChangeClusterFile(dir, [](std::vector<ClusterMember>& members) {
              members.push_back({"worker", {.pid = 1, .start_ticks = 1}, {}});
            }).ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(ReadClusterFile(dir).value().size(), kThreads * kChanges);
  std::filesystem::remove(std::filesystem::path(dir) / kClusterFile);
}

TEST(ClusterFile, OfAnOlderBuildIsReadToo) {
  const std::filesystem::path dir = testing::TempDir();
  std::ofstream(dir / kClusterFile)
      << "[{\"name\": \"scheduler\", \"pid\": 7, \"start_ticks\": 77}]";
  const auto members = ReadClusterFile(dir);
  ASSERT_TRUE(members.ok()) << members.status();
  ASSERT_EQ(members->size(), 1u);
  EXPECT_EQ((*members)[0].process.start_ticks, 77u);
  EXPECT_EQ((*members)[0].share, WorkerShare()) << "it is not known";
  std::filesystem::remove(dir / kClusterFile);
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
  std::filesystem::remove(dir / kClusterFile);
}

// Two containers of one name share a folder: the one must not take the other's
// processes for ended.
TEST(ClusterFile, OfAnotherContainerOfTheNameIsLeftAlone) {
  const std::filesystem::path dir = testing::TempDir();
  const ProcessSpace here = ThisProcessSpace();
  std::ofstream(dir / kClusterFile)
      << "{\"host\": \"" << here.host << "\", \"boot\": \"" << here.boot
      << "\", \"pids\": " << here.pids + 1 << ", \"members\": []}";
  {
    const auto lock = FileLock::Take(dir / "lock", "its scheduler");
    EXPECT_EQ(ReadClusterFile(dir).status().code(),
              absl::StatusCode::kFailedPrecondition);
  }
  EXPECT_TRUE(ReadClusterFile(dir).ok()) << "it is gone";
  std::filesystem::remove(dir / kClusterFile);
}

TEST(ClusterFile, RefusesWhatIsNotOurs) {
  const std::filesystem::path dir = testing::TempDir();
  for (const char* text : {"", "{}", "[1]", "[{\"name\": \"x\"}]",
                           "[{\"name\": 1, \"pid\": 2, \"start_ticks\": 3}]"}) {
    std::ofstream(dir / kClusterFile) << text;
    EXPECT_EQ(ReadClusterFile(dir).status().code(), absl::StatusCode::kDataLoss)
        << text;
  }
  std::filesystem::remove(dir / kClusterFile);
}

}  // namespace
}  // namespace troupe
