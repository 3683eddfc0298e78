#include "proto/base/cores.h"

#include <algorithm>

#include "gtest/gtest.h"
#include "tests/proto/base/on_one_core.h"

namespace troupe {
namespace {

TEST(Cores, ThereIsOneAndEachIsCountedOnce) {
  const std::vector<int> cores = UsableCores();
  ASSERT_FALSE(cores.empty());
  EXPECT_TRUE(std::is_sorted(cores.begin(), cores.end()));
  EXPECT_EQ(std::adjacent_find(cores.begin(), cores.end()), cores.end());
  EXPECT_EQ(UsableCoreCount(), static_cast<int>(cores.size()));
  EXPECT_GE(HostCoreCount(), 1);
}

TEST(Cores, WhoIsPinnedMayUseNoOther) {
  const int host = HostCoreCount();
  OnOneCore([&](int core) {
    EXPECT_EQ(UsableCores(), std::vector<int>{core});
    EXPECT_EQ(UsableCoreCount(), 1);
    EXPECT_EQ(HostCoreCount(), host) << "others may use the rest";
  });
}

}  // namespace
}  // namespace troupe
