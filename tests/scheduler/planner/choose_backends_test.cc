#include "scheduler/planner/choose_backends.h"

#include <string>

#include "gtest/gtest.h"

namespace troupe {
namespace {

// The backends of groups {0, 1}, {2, 3} and {0, 2} where the four workers are
// in these domains.
std::string Backends(const std::vector<std::string>& domains) {
  std::vector<WorkerDescription> workers(domains.size());
  for (size_t i = 0; i < domains.size(); ++i) {
    workers[i].set_host("all-the-same");
    workers[i].set_memory_domain(domains[i]);
  }
  Plan plan;
  for (const auto& [a, b] : {std::pair(0, 1), {2, 3}, {0, 2}}) {
    Group& group = *plan.add_groups();
    group.add_ranks(a);
    group.add_ranks(b);
  }
  ChooseBackends(workers, plan);
  std::string backends;
  for (const Group& group : plan.groups()) backends += group.backend() + " ";
  return backends;
}

TEST(ChooseBackends, MemoryWhereTheRanksShareADomain) {
  EXPECT_EQ(Backends({"a", "a", "a", "a"}),
            "shared_memory shared_memory shared_memory ");
  EXPECT_EQ(Backends({"a", "a", "b", "b"}),
            "shared_memory shared_memory gloo ");
  EXPECT_EQ(Backends({"a", "b", "a", "b"}), "gloo gloo shared_memory ");
}

TEST(ChooseBackends, NoDomainIsSharedWithNobody) {
  EXPECT_EQ(Backends({"", "", "", ""}), "gloo gloo gloo ");
  EXPECT_EQ(Backends({"a", "a", "", "a"}), "shared_memory gloo gloo ");
}

// The backends of groups {0, 1} and {0, 2} of workers on these GPUs, all on one
// host.
std::string GpuBackends(const std::vector<std::string>& uuids) {
  std::vector<WorkerDescription> workers(uuids.size());
  for (size_t i = 0; i < uuids.size(); ++i) {
    workers[i].set_memory_domain("a");
    workers[i].mutable_gpu()->set_uuid(uuids[i]);
  }
  Plan plan;
  for (const int other : {1, 2}) {
    Group& group = *plan.add_groups();
    group.add_ranks(0);
    group.add_ranks(other);
  }
  ChooseBackends(workers, plan);
  std::string backends;
  for (const Group& group : plan.groups()) {
    backends += (group.staged() ? "staged " : "") + group.backend() + ", ";
  }
  return backends;
}

TEST(ChooseBackends, NcclWhereEachRankHasAGpu) {
  EXPECT_EQ(GpuBackends({"x", "y", "z"}), "nccl, nccl, ");
  EXPECT_EQ(GpuBackends({"x", "x", "z"}), "staged shared_memory, nccl, ");
}

}  // namespace
}  // namespace troupe
