#include "scheduler/simulate/traffic.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace troupe {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;

LinkRate Link(double latency_us, double bytes_per_second) {
  LinkRate link;
  link.set_latency_us(latency_us);
  link.set_bytes_per_second(bytes_per_second);
  return link;
}

// Of `each` ranks on each of `hosts` hosts, over NCCL.
GroupLinks Hosts(int hosts, int each) {
  return {.local = Link(10, 100e9),
          .network = Link(20, 2e9),
          .ranks = hosts * each,
          .hosts = hosts,
          .fewest = each,
          .most = each,
          .crossings = hosts > 1 ? hosts : 0,
          .algorithms = Algorithms::kNccl};
}

Operation Of(Collective collective, const GroupLinks& group, int64_t bytes) {
  return {
      .size = {.bytes = bytes, .ranks = group.ranks, .collective = collective}};
}

auto Links(double out, double in, double local_out, double local_in) {
  return ElementsAre(DoubleEq(out), DoubleEq(in), DoubleEq(local_out),
                     DoubleEq(local_in));
}

TEST(CollectiveTraffic, OneRankHasNone) {
  const GroupLinks alone = Hosts(1, 1);
  const Traffic traffic =
      CollectiveTraffic(alone, {}, Of(ALL_REDUCE, alone, 1000));
  EXPECT_EQ(traffic.latency, 0);
  EXPECT_EQ(traffic.moving, 0);
  EXPECT_THAT(traffic.bytes, Links(0, 0, 0, 0));
}

TEST(CollectiveTraffic, OnAHostItIsARing) {
  const GroupLinks group = Hosts(1, 4);
  const GroupPlace place = {.on_host = 4};
  const Traffic sum =
      CollectiveTraffic(group, place, Of(ALL_REDUCE, group, 1'000'000));
  EXPECT_DOUBLE_EQ(sum.latency, 6 * 10e-6);
  EXPECT_DOUBLE_EQ(sum.moving, 1.5e6 / 100e9);
  EXPECT_THAT(sum.bytes, Links(0, 0, 1.5e6, 1.5e6));
  const Traffic gather =
      CollectiveTraffic(group, place, Of(ALL_GATHER, group, 1'000'000));
  EXPECT_DOUBLE_EQ(gather.latency, 3 * 10e-6);
  EXPECT_THAT(gather.bytes, Links(0, 0, 0.75e6, 0.75e6));
}

// Each adapter of a host carries its part of what crosses.
TEST(CollectiveTraffic, BetweenHostsEachRankHasARing) {
  const GroupLinks group = Hosts(2, 4);
  const Traffic gather = CollectiveTraffic(group, {.on_host = 4},
                                           Of(ALL_GATHER, group, 8'000'000));
  EXPECT_THAT(gather.bytes, Links(7e6 / 4, 7e6 / 4, 7e6 * 3 / 4, 7e6 * 3 / 4));
  EXPECT_DOUBLE_EQ(gather.moving, 7e6 / 4 / 2e9);
  EXPECT_DOUBLE_EQ(gather.latency, 2 * 20e-6 + 5 * 10e-6);
}

// A ring of 8,192 ranks has 2 (N - 1) latencies; NCCL has a tree for that.
TEST(CollectiveTraffic, ManyRanksSumSmallBuffersOverATree) {
  const GroupLinks group = Hosts(1024, 8);
  const GroupPlace place = {.on_host = 8};
  const Traffic small =
      CollectiveTraffic(group, place, Of(ALL_REDUCE, group, 80'000));
  EXPECT_DOUBLE_EQ(small.latency, 2 * (10 * 20e-6 + 7 * 10e-6));
  EXPECT_THAT(small.bytes, Links(2e4, 2e4, 16e4, 16e4));
  // With few hosts and much to sum, a ring has less to carry.
  const GroupLinks two = Hosts(2, 8);
  const Traffic large =
      CollectiveTraffic(two, place, Of(ALL_REDUCE, two, 8'000'000'000));
  EXPECT_DOUBLE_EQ(large.bytes[NETWORK_OUT], 15e9 / 8);
}

// At the boundary of a host one rank sends and one receives, by one adapter.
TEST(CollectiveTraffic, AShiftCrossesByOneAdapter) {
  const GroupLinks group = Hosts(2, 8);
  Operation shift = Of(SHIFT, group, 1'000'000);
  const auto bytes = [&](const GroupPlace& place) {
    const Traffic traffic = CollectiveTraffic(group, place, shift);
    EXPECT_DOUBLE_EQ(traffic.latency, 20e-6);
    EXPECT_DOUBLE_EQ(traffic.moving, 1e6 / 2e9);
    return traffic.bytes;
  };
  const GroupPlace last = {.on_host = 8, .next_far = true};
  EXPECT_THAT(bytes({.on_host = 8}), Links(0, 0, 1e6, 1e6));
  EXPECT_THAT(bytes(last), Links(1e6, 0, 0, 1e6));
  shift.backward = true;
  EXPECT_THAT(bytes(last), Links(0, 1e6, 1e6, 0));
}

TEST(CollectiveTraffic, AllToAllSendsWhatCrosses) {
  const GroupLinks group = Hosts(2, 4);
  const Traffic traffic = CollectiveTraffic(group, {.on_host = 4},
                                            Of(ALL_TO_ALL, group, 8'000'000));
  EXPECT_THAT(traffic.bytes, Links(4e6, 4e6, 3e6, 3e6));
  EXPECT_DOUBLE_EQ(traffic.moving, 4e6 / 2e9);
}

// Two hosts of two ranks, over Gloo.
GroupLinks Gloo() {
  GroupLinks group = Hosts(2, 2);
  group.algorithms = Algorithms::kGloo;
  return group;
}

TEST(CollectiveTraffic, GlooSendsWhatIsSmallStraightToEachRank) {
  const GroupLinks group = Gloo();
  const Traffic sum =
      CollectiveTraffic(group, {.on_host = 2}, Of(ALL_REDUCE, group, 20'000));
  EXPECT_THAT(sum.bytes, Links(40e3, 40e3, 20e3, 20e3));
  EXPECT_DOUBLE_EQ(sum.latency, 2 * 20e-6);
  EXPECT_DOUBLE_EQ(sum.moving, 40e3 / 2e9);
  const Traffic gather =
      CollectiveTraffic(group, {.on_host = 2}, Of(ALL_GATHER, group, 80'000));
  EXPECT_THAT(gather.bytes, Links(40e3, 40e3, 20e3, 20e3));
}

// Sums of bf16 are rounded once: their first half goes straight, too.
TEST(CollectiveTraffic, GlooScattersNarrowSumsStraight) {
  const GroupLinks group = Gloo();
  Operation sum = Of(ALL_REDUCE, group, 4'000'000);
  sum.narrow = true;
  const GroupPlace end = {.on_host = 2, .next_far = true};
  EXPECT_THAT(CollectiveTraffic(group, end, sum).bytes,
              Links(2e6 + 3e6, 2e6, 1e6, 1e6 + 3e6));
  Operation scatter = Of(REDUCE_SCATTER, group, 4'000'000);
  EXPECT_THAT(CollectiveTraffic(group, end, scatter).bytes,
              Links(3e6, 0, 0, 3e6));
  scatter.narrow = true;
  EXPECT_THAT(CollectiveTraffic(group, end, scatter).bytes,
              Links(2e6, 2e6, 1e6, 1e6));
}

// As it adds up in the order of the ranks; a ring has another.
TEST(CollectiveTraffic, GlooScattersSumsInOrderStraight) {
  GroupLinks group = Gloo();
  Operation scatter = Of(REDUCE_SCATTER, group, 4'000'000);
  scatter.narrow = true;
  const GroupPlace end = {.on_host = 2, .next_far = true};
  const Traffic narrow = CollectiveTraffic(group, end, scatter);
  scatter.narrow = false;
  const std::string ring_look = LookOf(group);
  group.in_order = true;
  EXPECT_NE(LookOf(group), ring_look);
  const Traffic in_order = CollectiveTraffic(group, end, scatter);
  EXPECT_EQ(in_order.bytes, narrow.bytes);
  EXPECT_EQ(in_order.latency, narrow.latency);
  EXPECT_EQ(in_order.moving, narrow.moving);
  const Operation gather = Of(ALL_GATHER, group, 4'000'000);
  EXPECT_THAT(CollectiveTraffic(group, end, gather).bytes,
              Links(3e6, 0, 0, 3e6))
      << "nothing is added up";
}

// Which each rank is as often.
TEST(CollectiveTraffic, GlooSendsBlocksOfASumToTheRoot) {
  const GroupLinks group = Gloo();
  const Traffic sum = CollectiveTraffic(group, {.on_host = 2, .next_far = true},
                                        Of(REDUCE, group, 4'000'000));
  EXPECT_THAT(sum.bytes, Links(3e6 + 0.5e6, 0.5e6, 0.25e6, 3e6 + 0.25e6));
  // The root's link brings the blocks of the other host.
  EXPECT_DOUBLE_EQ(sum.moving, 3e6 / 2e9 + 2e6 / 2e9);
}

// What Gloo sends between two hosts goes over one link of each.
TEST(CollectiveTraffic, OneRingUsesTheNetworkAtItsEnds) {
  const GroupLinks group = Gloo();
  const auto sum = Of(ALL_REDUCE, group, 1'000'000);
  const Traffic end =
      CollectiveTraffic(group, {.on_host = 2, .next_far = true}, sum);
  EXPECT_THAT(end.bytes, Links(1.5e6, 0, 0, 1.5e6));
  EXPECT_DOUBLE_EQ(end.moving, 1.5e6 / 2e9);
}

}  // namespace
}  // namespace troupe
