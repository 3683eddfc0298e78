#include "worker/doctor/memory.h"

#include "gtest/gtest.h"

namespace troupe {
namespace {

constexpr int64_t kGiB = 1 << 30;

TEST(Memory, IsEnoughOrNot) {
  const Finding plenty =
      JudgeMemory({.total_bytes = 64 * kGiB, .available_bytes = 32 * kGiB});
  EXPECT_EQ(plenty.state, FindingState::kOk);
  EXPECT_EQ(plenty.text, "32.0 GiB available of 64.0 GiB");
  const Finding little =
      JudgeMemory({.total_bytes = 4 * kGiB, .available_bytes = kGiB});
  EXPECT_EQ(little.state, FindingState::kWarn);
  EXPECT_FALSE(little.advice.empty());
}

TEST(Memory, IsWhatTheControlGroupAllows) {
  const Finding limited = JudgeMemory({.total_bytes = 64 * kGiB,
                                       .available_bytes = 32 * kGiB,
                                       .cgroup_bytes = 10 * kGiB});
  EXPECT_EQ(limited.state, FindingState::kWarn);
  EXPECT_NE(limited.text.find("the control group allows 10.0 GiB"),
            std::string::npos)
      << limited.text;
  EXPECT_NE(limited.advice.find("under 8.0 GiB"), std::string::npos)
      << limited.advice;
  EXPECT_EQ(JudgeMemory({.total_bytes = 64 * kGiB,
                         .available_bytes = 32 * kGiB,
                         .cgroup_bytes = 48 * kGiB})
                .state,
            FindingState::kOk);
}

TEST(MeminfoBytes, FindsTheKey) {
  constexpr char kText[] = "MemTotal:   16 kB\nMemAvailable:    8 kB\n";
  EXPECT_EQ(MeminfoBytes(kText, "MemTotal"), 16384);
  EXPECT_EQ(MeminfoBytes(kText, "MemAvailable"), 8192);
  EXPECT_EQ(MeminfoBytes(kText, "Mem"), 0);
  EXPECT_EQ(MeminfoBytes("", "MemTotal"), 0);
}

TEST(SharedMemory, FailsWhereThereIsNoDomain) {
  EXPECT_EQ(JudgeSharedMemory("boot 1 pids 2 user 3").state, FindingState::kOk);
  const Finding none = JudgeSharedMemory("");
  EXPECT_EQ(none.state, FindingState::kFail);
  EXPECT_FALSE(none.advice.empty());
}

TEST(Memory, OfThisMachineIsKnown) {
  EXPECT_NE(CheckMemory().text.find(" available of "), std::string::npos);
  EXPECT_FALSE(CheckSharedMemory().text.empty());
}

}  // namespace
}  // namespace troupe
