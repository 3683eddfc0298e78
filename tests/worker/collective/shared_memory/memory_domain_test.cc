#include "worker/collective/shared_memory/memory_domain.h"

#include "gtest/gtest.h"

namespace troupe {
namespace {

TEST(MemoryDomain, NamesKernelProcessesAndUser) {
  const std::string domain = MemoryDomain();
  EXPECT_EQ(domain, MemoryDomain());
  EXPECT_EQ(domain.rfind("boot ", 0), 0u) << domain;
  EXPECT_NE(domain.find(" pids "), std::string::npos) << domain;
  EXPECT_NE(domain.find(" user "), std::string::npos) << domain;
}

}  // namespace
}  // namespace troupe
