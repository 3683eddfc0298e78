#include "worker/doctor/cgroup.h"

#include <filesystem>
#include <fstream>

#include "gtest/gtest.h"

namespace troupe {
namespace {

namespace fs = std::filesystem;

class CgroupTest : public testing::Test {
 protected:
  CgroupTest() : root_(fs::path(testing::TempDir()) / "cgroup") {
    fs::remove_all(root_);
  }
  void Write(const std::string& path, const std::string& content) {
    const fs::path file = root_ / path;
    fs::create_directories(file.parent_path());
    std::ofstream(file) << content;
  }
  CgroupLimits Read() { return ReadCgroupLimits(root_.string()); }

  const fs::path root_;
};

TEST_F(CgroupTest, TakesTheLeastOfAllLevels) {
  Write("proc/self/cgroup", "0::/slice/job\n");
  Write("sys/fs/cgroup/slice/job/cpu.max", "max 100000\n");
  Write("sys/fs/cgroup/slice/cpu.max", "150000 100000\n");
  Write("sys/fs/cgroup/cpu.max", "400000 100000\n");
  Write("sys/fs/cgroup/slice/job/memory.max", "1073741824\n");
  Write("sys/fs/cgroup/slice/memory.max", "max\n");
  EXPECT_EQ(Read().cores, 1.5);
  EXPECT_EQ(Read().memory_bytes, 1 << 30);
}

TEST_F(CgroupTest, KnowsVersionOne) {
  Write("proc/self/cgroup",
        "5:memory:/docker/abc\n4:cpu,cpuacct:/docker/abc\n1:name=x:/\n");
  // In the container the host's path is not there.
  Write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "200000\n");
  Write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  Write("sys/fs/cgroup/memory/memory.limit_in_bytes", "536870912\n");
  EXPECT_EQ(Read().cores, 2.0);
  EXPECT_EQ(Read().memory_bytes, 512 << 20);
}

TEST_F(CgroupTest, NothingLimitsWhereNothingIsSaid) {
  EXPECT_FALSE(Read().cores.has_value());
  Write("proc/self/cgroup", "0::/\n");
  EXPECT_FALSE(Read().cores.has_value());
  EXPECT_FALSE(Read().memory_bytes.has_value());
}

TEST(ParseCpuMax, ReadsQuotaAndPeriod) {
  EXPECT_EQ(ParseCpuMax("50000 100000\n"), 0.5);
  for (const char* none :
       {"", "max 100000", "-1 100000", "0 100000", "1 0", "200000", "1 2 3"}) {
    EXPECT_FALSE(ParseCpuMax(none).has_value()) << none;
  }
}

TEST(ParseMemoryMax, ReadsBytes) {
  EXPECT_EQ(ParseMemoryMax("4096\n"), 4096);
  // The last is version 1's "no limit".
  for (const char* none : {"", "max\n", "9223372036854771712\n"}) {
    EXPECT_FALSE(ParseMemoryMax(none).has_value()) << none;
  }
}

}  // namespace
}  // namespace troupe
