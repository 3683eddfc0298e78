#include "worker/doctor/limits.h"

#include <limits>

#include "gtest/gtest.h"

namespace troupe {
namespace {

constexpr uint64_t kNoLimit = std::numeric_limits<uint64_t>::max();

TEST(ResourceLimit, WantsSocketsForManyRanks) {
  EXPECT_EQ(JudgeFileLimit({.soft = kNoLimit, .hard = kNoLimit}).text,
            "no limit");
  EXPECT_EQ(JudgeFileLimit({.soft = 4096, .hard = 4096}).state,
            FindingState::kOk);
  const Finding low = JudgeFileLimit({.soft = 1024, .hard = 524288});
  EXPECT_EQ(low.state, FindingState::kWarn);
  EXPECT_EQ(low.text, "1024 open files; a job of 64 ranks wants 4096");
  EXPECT_EQ(low.advice, "ulimit -n 4096");
  const Finding lowest = JudgeFileLimit({.soft = 64, .hard = 1024});
  EXPECT_EQ(lowest.state, FindingState::kFail);
  EXPECT_NE(lowest.advice.find("hard limit of 1024"), std::string::npos)
      << lowest.advice;
}

TEST(LockLimit, MattersToOldKernelsOnly) {
  EXPECT_EQ(JudgeLockLimit({.bytes = kNoLimit, .kernel = "5.4.0"}).text,
            "no limit");
  EXPECT_EQ(
      JudgeLockLimit({.bytes = 64 << 10, .kernel = "6.1.0-13-amd64"}).state,
      FindingState::kOk);
  EXPECT_EQ(JudgeLockLimit({.bytes = 8 << 20, .kernel = "5.11.0"}).state,
            FindingState::kOk);
  const Finding low = JudgeLockLimit({.bytes = 64 << 10, .kernel = "5.11.0"});
  EXPECT_EQ(low.state, FindingState::kWarn);
  EXPECT_EQ(low.text.rfind("64 KiB of memory may be locked; ", 0), 0)
      << low.text;
}

TEST(KernelRelease, IsCompared) {
  EXPECT_TRUE(IsAtLeast("5.12.0", {.major = 5, .minor = 12}));
  EXPECT_TRUE(IsAtLeast("5.12-rc1", {.major = 5, .minor = 12}));
  EXPECT_TRUE(IsAtLeast("6.1.0-13-amd64", {.major = 5, .minor = 12}));
  EXPECT_FALSE(IsAtLeast("5.9.7", {.major = 5, .minor = 12}));
  EXPECT_FALSE(IsAtLeast("4.19.0", {.major = 5, .minor = 12}));
  EXPECT_FALSE(IsAtLeast("", {.major = 5, .minor = 12}));
}

TEST(Limits, OfThisProcessAreKnown) {
  EXPECT_FALSE(CheckFileLimit().text.empty());
  EXPECT_FALSE(CheckLockLimit().text.empty());
}

}  // namespace
}  // namespace troupe
