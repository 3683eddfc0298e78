#include "clients/cli/view/network_view.h"

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace troupe {
namespace {

struct Pair {
  int one = 0;
  int other = 0;
  double bytes_per_second = 1e9;
  double latency_us = 30;
};

// Hosts h0, h1, ...; each pair is said by both.
Topology With(int hosts, const std::vector<Pair>& pairs) {
  Topology topology;
  for (int h = 0; h < hosts; ++h) {
    HostTopology& host = *topology.add_hosts();
    host.set_host(absl::StrCat("h", h));
    host.add_devices()->mutable_between()->set_why("nobody has measured it");
  }
  for (const Pair& pair : pairs) {
    for (const auto& [from, to] :
         {std::pair(pair.one, pair.other), {pair.other, pair.one}}) {
      HostPair& said = *topology.mutable_hosts(from)->add_pairs();
      said.set_host(absl::StrCat("h", to));
      said.mutable_rate()->set_bytes_per_second(pair.bytes_per_second);
      said.mutable_rate()->set_latency_us(pair.latency_us);
    }
  }
  return topology;
}

TEST(NetworkView, IsAMatrixAndNamesSlowPairs) {
  EXPECT_EQ(
      NetworkView(With(3, {{0, 1}, {1, 2, 1.1e9}, {0, 2, 9e7, 35}})),
      "HOST             h0              h1              h2\n"
      "h0                -    1 GB/s 30 us   90 MB/s 35 us\n"
      "h1     1 GB/s 30 us               -  1.1 GB/s 30 us\n"
      "h2    90 MB/s 35 us  1.1 GB/s 30 us               -\n"
      "3 of 3 pairs of hosts are measured, each host with two others or a "
      "few more\n"
      "slow: h0 and h2 reach 90 MB/s 35 us, the median of all pairs is 1 GB/s "
      "30 us\n");
}

TEST(NetworkView, NamesPairsThatAreFar) {
  const std::string far =
      NetworkView(With(3, {{0, 1}, {1, 2}, {0, 2, 1e9, 100}}));
  EXPECT_TRUE(absl::StrContains(far, "slow: h0 and h2 reach ")) << far;
  const std::string even =
      NetworkView(With(3, {{0, 1}, {1, 2, 6e8}, {0, 2, 1e9, 80}}));
  EXPECT_TRUE(absl::StrContains(even, "no pair is slow\n")) << even;
}

TEST(NetworkView, SaysWhatIsNotMeasured) {
  const std::string text = NetworkView(With(3, {{0, 1}}));
  EXPECT_TRUE(absl::StrContains(text, "1 of 3 pairs of hosts are measured"))
      << text;
  EXPECT_TRUE(absl::StrContains(text, "\nh2: nobody has measured it\n"))
      << text;
  EXPECT_FALSE(absl::StrContains(text, "slow")) << "of one there is no median";
  EXPECT_EQ(NetworkView(With(1, {})),
            "workers are on 1 host; there is no network between them\n");
  // Of a host that is gone nothing is said.
  Topology gone = With(3, {{0, 1}});
  gone.mutable_hosts()->DeleteSubrange(1, 1);
  EXPECT_TRUE(absl::StrContains(NetworkView(gone), "0 of 1 pairs"));
}

// A terminal has no room for more columns.
TEST(NetworkView, ListsTheSlowestPairsOfManyHosts) {
  std::vector<Pair> pairs;
  for (int h = 0; h < 60; ++h) pairs.push_back({h, (h + 1) % 60});
  pairs[20].bytes_per_second = 2e8;
  const std::string text = NetworkView(With(60, pairs));
  EXPECT_TRUE(absl::StartsWith(text,
                               "HOST  HOST  BANDWIDTH  LATENCY  MEASURED\n"
                               "h20   h21    0.2 GB/s    30 us  -\n"))
      << text;
  EXPECT_TRUE(absl::StrContains(text, "and 20 faster pairs\n")) << text;
  EXPECT_TRUE(absl::StrContains(text, "slow: h20 and h21 reach")) << text;
}

}  // namespace
}  // namespace troupe
