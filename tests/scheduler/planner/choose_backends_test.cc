#include "scheduler/planner/choose_backends.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"

namespace troupe {
namespace {

// pipeline 2 x data n, and groups along both.
Plan PlanOf(int pipeline, int data) {
  Plan plan;
  for (const auto& [name, size] :
       {std::pair("pipeline", pipeline), {"data", data}}) {
    Axis& axis = *plan.mutable_mesh()->add_axes();
    axis.set_name(name);
    axis.set_size(size);
  }
  for (const char* axis : {"data", "pipeline"}) {
    plan.add_groups()->add_spans()->set_axis(axis);
  }
  return plan;
}

// "gloo gloo, staged nccl": of all groups of a kind, or one word for all.
std::string CarriersText(const Plan& plan) {
  std::vector<std::string> kinds;
  for (const Group& group : plan.groups()) {
    kinds.push_back(
        absl::StrJoin(group.carriers(), " ",
                      [](std::string* out, const Group::Carrier& carrier) {
                        absl::StrAppend(out, carrier.staged() ? "staged-" : "",
                                        carrier.backend());
                      }));
  }
  return absl::StrJoin(kinds, ", ");
}

// Of the groups {0, 1} and {2, 3}, then {0, 2} and {1, 3}, where the four
// workers are in these domains.
std::string Backends(const std::vector<std::string>& domains) {
  std::vector<WorkerDescription> workers(domains.size());
  for (size_t i = 0; i < domains.size(); ++i) {
    workers[i].set_host("all-the-same");
    workers[i].set_memory_domain(domains[i]);
  }
  Plan plan = PlanOf(2, 2);
  ChooseBackends(workers, plan.mesh(), *plan.mutable_groups());
  return CarriersText(plan);
}

TEST(ChooseBackends, MemoryWhereTheRanksShareADomain) {
  EXPECT_EQ(Backends({"a", "a", "a", "a"}), "shared_memory, shared_memory");
  EXPECT_EQ(Backends({"a", "a", "b", "b"}), "shared_memory, gloo");
  EXPECT_EQ(Backends({"a", "b", "a", "b"}), "gloo, shared_memory");
}

TEST(ChooseBackends, NoDomainIsSharedWithNobody) {
  EXPECT_EQ(Backends({"", "", "", ""}), "gloo, gloo");
  EXPECT_EQ(Backends({"a", "a", "", "a"}),
            "shared_memory gloo, gloo shared_memory");
}

// Of the groups {0, 1} and {2, 3} of workers on these GPUs, all on one host,
// which NCCL takes for these; none: for what it is.
std::string GpuBackends(const std::vector<std::string>& uuids,
                        const std::vector<std::string>& hosts = {}) {
  std::vector<WorkerDescription> workers(uuids.size());
  for (size_t i = 0; i < uuids.size(); ++i) {
    workers[i].set_memory_domain("a");
    workers[i].mutable_gpu()->set_uuid(uuids[i]);
    if (!hosts.empty()) workers[i].mutable_gpu()->set_nccl_host(hosts[i]);
  }
  Plan plan = PlanOf(2, 2);
  plan.mutable_groups()->RemoveLast();
  ChooseBackends(workers, plan.mesh(), *plan.mutable_groups());
  return CarriersText(plan);
}

TEST(ChooseBackends, NcclWhereEachRankHasAGpu) {
  EXPECT_EQ(GpuBackends({"x", "y", "z", "u"}), "nccl");
  EXPECT_EQ(GpuBackends({"x", "x", "y", "z"}), "staged-shared_memory nccl");
  EXPECT_EQ(GpuBackends({"x", "x", "x", "x"}, {"a", "a", "a", "b"}),
            "staged-shared_memory nccl");
}

}  // namespace
}  // namespace troupe
