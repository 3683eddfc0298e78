#include "scheduler/simulate/effort.h"

#include "gtest/gtest.h"

namespace troupe {
namespace {

// Of what moves bytes: neither they nor its latency keep the processor busy.
TEST(EffortOf, CommunicationOnALaneThatComputesIsNoWork) {
  const Cost cost = {.elementwise = 3e-6,
                     .communication = 5e-6,
                     .waiting = 1e-6,
                     .on_wire = 4e-6};
  const Effort computes = EffortOf(cost, true);
  EXPECT_EQ(computes.compute_ns, 3000);
  EXPECT_EQ(computes.other_ns, 2000);
  EXPECT_EQ(computes.wire_ns, 4000);
  const Effort beside = EffortOf(cost, false);
  EXPECT_EQ(beside.compute_ns, 0);
  EXPECT_EQ(beside.other_ns, 5000);
  EXPECT_EQ(beside.wire_ns, 4000);
}

TEST(EffortOf, SaysWhatIsOnLinksAndGoesToOtherHosts) {
  Cost cost = {.communication = 4e-6, .on_wire = 4e-6};
  cost.on_links[LOCAL_OUT] = 1e-6;
  cost.bytes = {100, 200, 300, 400};
  const Effort effort = EffortOf(cost, false);
  EXPECT_EQ(effort.links_ns[LOCAL_OUT], 1000);
  EXPECT_EQ(effort.out_bytes, 100);
  EXPECT_EQ(effort.in_bytes, 200);
}

}  // namespace
}  // namespace troupe
