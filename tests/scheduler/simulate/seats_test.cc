#include "scheduler/simulate/seats.h"

#include <string>

#include "gtest/gtest.h"

namespace troupe {
namespace {

WorkerDescription Cpu(const std::string& host, int threads, int cores) {
  WorkerDescription worker;
  worker.set_host(host);
  worker.set_threads(threads);
  worker.set_host_cores(cores);
  return worker;
}

WorkerDescription OnGpu(const std::string& uuid) {
  WorkerDescription worker = Cpu("host", 8, 2);
  worker.mutable_gpu()->set_uuid(uuid);
  return worker;
}

TEST(SeatsOf, ListsCrowdedHostsOnly) {
  const Seats seats = SeatsOf({Cpu("a", 1, 2), Cpu("b", 2, 2), Cpu("a", 1, 2),
                               Cpu("b", 2, 2), Cpu("c", 9, 0)});
  ASSERT_EQ(seats.processors.size(), 1u);
  EXPECT_EQ(seats.processors[0].cores, 2);
  EXPECT_EQ(seats.processors[0].wanted, 4);
  ASSERT_EQ(seats.ranks.size(), 5u);
  EXPECT_EQ(seats.ranks[0].processor, Seats::kOwn);
  EXPECT_EQ(seats.ranks[1].processor, 0);
  EXPECT_EQ(seats.ranks[1].cores, 2);
  EXPECT_EQ(seats.ranks[3].processor, 0);
  EXPECT_EQ(seats.ranks[4].processor, Seats::kOwn);  // said no cores
  EXPECT_EQ(seats.FairShare(0), 1);
  EXPECT_EQ(seats.FairShare(1), 0.5);
}

// Ranks on GPUs do not compute on the host's cores.
TEST(SeatsOf, AGpuIsAProcessorToo) {
  const Seats seats = SeatsOf({OnGpu("x"), OnGpu("y"), OnGpu("x")});
  ASSERT_EQ(seats.processors.size(), 1u);
  EXPECT_EQ(seats.processors[0].cores, 1);
  EXPECT_EQ(seats.ranks[0].processor, 0);
  EXPECT_EQ(seats.ranks[1].processor, Seats::kOwn);
  EXPECT_EQ(seats.FairShare(2), 0.5);
}

}  // namespace
}  // namespace troupe
