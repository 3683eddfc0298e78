// Jobs on several hosts, for tests of how exchanges are carried out.
#ifndef TROUPE_TESTS_SCHEDULER_PLANNER_ON_HOSTS_H_
#define TROUPE_TESTS_SCHEDULER_PLANNER_ON_HOSTS_H_

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "proto/cluster.pb.h"
#include "proto/job.pb.h"
#include "proto/plan.pb.h"
#include "tests/scheduler/example_job.h"

namespace troupe {

// Each on the host of that letter, whose workers share memory ten times as fast
// as the network between hosts.
inline std::vector<WorkerDescription> OnHosts(const std::string& hosts) {
  std::vector<WorkerDescription> workers =
      ExampleWorkers(static_cast<int>(hosts.size()));
  for (size_t i = 0; i < workers.size(); ++i) {
    WorkerDescription& worker = workers[i];
    worker.set_host(std::string(1, hosts[i]));
    worker.set_memory_domain(worker.host());
    LinkRate& memory = *worker.mutable_calibration()->mutable_shared_memory();
    memory.set_latency_us(1);
    memory.set_bytes_per_second(1e9);
    LinkRate& network = *worker.mutable_network()->mutable_rate();
    network.set_latency_us(20);
    network.set_bytes_per_second(1e8);
    Nic& nic = *worker.add_nics();
    nic.set_name("eth0");
    *nic.mutable_link()->mutable_rate() = network;
  }
  return workers;
}

inline JobSpec DataJob(int data, const std::string& all_reduce = "") {
  JobSpec job = ExampleJob({.data = data});
  if (!all_reduce.empty()) {
    job.mutable_communication()->set_all_reduce(all_reduce);
  }
  return job;
}

inline const Group& GroupNamed(const Plan& plan, const std::string& name) {
  for (const Group& group : plan.groups()) {
    if (group.name() == name) return group;
  }
  ADD_FAILURE() << "no group " << name;
  return plan.groups(0);
}

}  // namespace troupe

#endif  // TROUPE_TESTS_SCHEDULER_PLANNER_ON_HOSTS_H_
