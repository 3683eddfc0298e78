#include "scheduler/simulate/topology.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace troupe {
namespace {

using ::testing::ElementsAre;

WorkerDescription Worker(const std::string& name, const std::string& host) {
  WorkerDescription worker;
  worker.set_name(name);
  worker.set_host(host);
  worker.set_process_bytes(1);
  LinkRate& loopback = *worker.mutable_calibration()->mutable_loopback();
  loopback.set_bytes_per_second(5e9);
  return worker;
}

TopologyLink Link(double rate, RateSource source) {
  TopologyLink link;
  link.mutable_rate()->set_bytes_per_second(rate);
  link.set_source(source);
  return link;
}

Topology TopologyOfAll(const std::vector<WorkerDescription>& workers) {
  google::protobuf::RepeatedPtrField<WorkerStatus> list;
  for (const WorkerDescription& worker : workers) {
    WorkerStatus& status = *list.Add();
    status.set_state(WorkerStatus::IDLE);
    *status.mutable_description() = worker;
  }
  list.Add()->set_state(WorkerStatus::LOST);
  return TopologyOf(list);
}

TEST(TopologyOf, SaysWhatIsAssumedAndWhy) {
  WorkerDescription failed = Worker("b", "y");
  failed.mutable_network()->set_why("not measured with x: no route");
  const Topology topology = TopologyOfAll({failed, Worker("a", "x")});
  ASSERT_EQ(topology.hosts_size(), 2);
  const HostTopology& x = topology.hosts(0);
  EXPECT_EQ(x.host(), "x");
  ASSERT_EQ(x.devices_size(), 1);
  EXPECT_EQ(x.devices(0).worker(), "a");
  EXPECT_EQ(x.devices(0).within().source(), MEASURED);
  EXPECT_EQ(x.devices(0).within().rate().bytes_per_second(), 5e9);
  EXPECT_EQ(x.devices(0).between().source(), ASSUMED);
  EXPECT_EQ(x.devices(0).between().rate().bytes_per_second(), 1.1e9);
  EXPECT_EQ(x.devices(0).between().why(), "nobody has measured it");
  EXPECT_EQ(topology.hosts(1).devices(0).between().why(),
            "not measured with x: no route");
}

TEST(TopologyOf, HasThePairsOfHostsThatAreThere) {
  Topology measured;
  for (const char* host : {"x", "gone"}) {
    HostTopology& of_host = *measured.add_hosts();
    of_host.set_host(host);
    of_host.add_pairs()->set_host("y");
  }
  google::protobuf::RepeatedPtrField<WorkerStatus> list;
  WorkerStatus& status = *list.Add();
  status.set_state(WorkerStatus::IDLE);
  *status.mutable_description() = Worker("a", "x");
  const Topology topology = TopologyOf(list, measured);
  ASSERT_EQ(topology.hosts_size(), 1);
  EXPECT_EQ(topology.hosts(0).devices_size(), 1);
  ASSERT_EQ(topology.hosts(0).pairs_size(), 1);
  EXPECT_EQ(topology.hosts(0).pairs(0).host(), "y");
}

TEST(TopologyOf, NamesTheAdaptersThatWorkersShare) {
  std::vector<WorkerDescription> workers = {Worker("a", "x"), Worker("b", "x"),
                                            Worker("c", "x")};
  for (size_t i = 0; i < workers.size(); ++i) {
    *workers[i].mutable_network() = Link(2e9, GIVEN);
    Nic& nic = *workers[i].add_nics();
    nic.set_name(i == 1 ? "second" : "first");
    *nic.mutable_link() = Link(2e9, GIVEN);
  }
  const Topology topology = TopologyOfAll(workers);
  const HostTopology& host = topology.hosts(0);
  ASSERT_EQ(host.nics_size(), 2);
  EXPECT_EQ(host.nics(1).name(), "second");
  EXPECT_THAT(host.devices(0).nics(), ElementsAre(0));
  EXPECT_THAT(host.devices(1).nics(), ElementsAre(1));
  EXPECT_THAT(host.devices(2).nics(), ElementsAre(0));
}

TEST(LinksUsed, AreTheSlowestOfEachSort) {
  std::vector<WorkerDescription> workers = {Worker("a", "x"), Worker("b", "x"),
                                            Worker("c", "y")};
  workers[1].mutable_calibration()->mutable_loopback()->set_bytes_per_second(
      3e9);
  *workers[2].mutable_network() = Link(0.5e9, MEASURED);
  const std::vector<LinkUsed> used = LinksUsed(workers);
  ASSERT_EQ(used.size(), 3u);
  EXPECT_EQ(used[0].what(), "within hosts");
  EXPECT_EQ(used[0].link().rate().bytes_per_second(), 3e9);
  EXPECT_EQ(used[0].count(), 2);
  EXPECT_EQ(used[1].what(), "between hosts");
  EXPECT_EQ(used[1].link().source(), MEASURED);
  EXPECT_EQ(used[1].count(), 3);
  EXPECT_EQ(used[2].what(), "shared adapters");
  EXPECT_EQ(used[2].link().source(), ASSUMED);
  EXPECT_EQ(used[2].count(), 1);
  EXPECT_TRUE(LinksUsed({Worker("a", "x")}).empty());
}

}  // namespace
}  // namespace troupe
