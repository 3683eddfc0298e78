#include "clients/cli/view/network_view.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "clients/cli/view/format.h"

namespace troupe {
namespace {

constexpr int kMatrixHosts = 12;  // of more a terminal is not wide enough
constexpr size_t kPairsShown = 40;
constexpr double kSlowBandwidth = 0.5;  // of the median's
constexpr double kSlowLatency = 3;

using HostNames = std::pair<std::string, std::string>;  // in their order
using Pairs = std::map<HostNames, HostPair>;

// Of each pair what was measured last, whichever of the two says it.
Pairs PairsOf(const Topology& topology) {
  std::map<std::string, bool> there;
  for (const HostTopology& host : topology.hosts()) there[host.host()] = true;
  Pairs pairs;
  for (const HostTopology& host : topology.hosts()) {
    for (const HostPair& pair : host.pairs()) {
      if (there.count(pair.host()) == 0) continue;
      HostNames names(host.host(), pair.host());
      if (names.second < names.first) std::swap(names.first, names.second);
      HostPair& known = pairs[names];
      if (known.measured_unix_ms() <= pair.measured_unix_ms()) known = pair;
    }
  }
  return pairs;
}

template <typename Value>
double MedianOf(const Pairs& pairs, const Value& value) {
  std::vector<double> values;
  for (const auto& [names, pair] : pairs) values.push_back(value(pair.rate()));
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<int64_t>(values.size()) / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

std::string RateAndLatency(const LinkRate& rate) {
  return absl::StrCat(BandwidthText(rate),
                      absl::StrFormat(" %.3g us", rate.latency_us()));
}

std::string Matrix(const Topology& topology, const Pairs& pairs) {
  std::vector<std::string> columns = {"HOST"};
  for (const HostTopology& host : topology.hosts()) {
    columns.push_back(absl::StrCat(host.host(), ">"));
  }
  Table table(columns);
  for (const HostTopology& host : topology.hosts()) {
    std::vector<std::string> cells = {host.host()};
    for (const HostTopology& other : topology.hosts()) {
      const auto pair = pairs.find(std::minmax(host.host(), other.host()));
      cells.push_back(
          pair == pairs.end() ? "-" : RateAndLatency(pair->second.rate()));
    }
    table.Add(std::move(cells));
  }
  return table.Text();
}

// The slowest first.
std::string List(const Pairs& pairs) {
  std::vector<const Pairs::value_type*> slowest;
  for (const auto& pair : pairs) slowest.push_back(&pair);
  std::stable_sort(slowest.begin(), slowest.end(), [](auto* a, auto* b) {
    return a->second.rate().bytes_per_second() <
           b->second.rate().bytes_per_second();
  });
  Table table({"HOST", "HOST", "BANDWIDTH>", "LATENCY>", "MEASURED"});
  for (size_t i = 0; i < std::min(kPairsShown, slowest.size()); ++i) {
    const auto& [names, pair] = *slowest[i];
    table.Add({names.first, names.second, BandwidthText(pair.rate()),
               absl::StrFormat("%.3g us", pair.rate().latency_us()),
               DateText(pair.measured_unix_ms())});
  }
  std::string text = table.Text();
  if (slowest.size() > kPairsShown) {
    absl::StrAppend(&text, "and ", slowest.size() - kPairsShown,
                    " faster pairs\n");
  }
  return text;
}

std::string SlowPairs(const Pairs& pairs) {
  const double bandwidth = MedianOf(
      pairs, [](const LinkRate& rate) { return rate.bytes_per_second(); });
  const double latency =
      MedianOf(pairs, [](const LinkRate& rate) { return rate.latency_us(); });
  LinkRate median;
  median.set_bytes_per_second(bandwidth);
  median.set_latency_us(latency);
  std::string text;
  for (const auto& [names, pair] : pairs) {
    const LinkRate& rate = pair.rate();
    if (rate.bytes_per_second() >= kSlowBandwidth * bandwidth &&
        rate.latency_us() <= kSlowLatency * latency) {
      continue;
    }
    absl::StrAppend(&text, "slow: ", names.first, " and ", names.second,
                    " reach ", RateAndLatency(rate),
                    ", the median of all pairs is ", RateAndLatency(median),
                    "\n");
  }
  return text;
}

// Why the links of a host are not measured, as the scheduler says.
std::string NotMeasured(const Topology& topology) {
  std::string text;
  for (const HostTopology& host : topology.hosts()) {
    if (!host.pairs().empty() || host.devices().empty()) continue;
    absl::StrAppend(&text, host.host(), ": ", host.devices(0).between().why(),
                    "\n");
  }
  return text;
}

}  // namespace

std::string NetworkView(const Topology& topology) {
  if (topology.hosts_size() < 2) {
    return absl::StrCat("workers are on ", topology.hosts_size(),
                        " host; there is no network between them\n");
  }
  const Pairs pairs = PairsOf(topology);
  const auto hosts = static_cast<size_t>(topology.hosts_size());
  std::string text;
  if (!pairs.empty()) {
    text = topology.hosts_size() <= kMatrixHosts ? Matrix(topology, pairs)
                                                 : List(pairs);
  }
  absl::StrAppend(&text, pairs.size(), " of ", hosts * (hosts - 1) / 2,
                  " pairs of hosts are measured, each host with two others "
                  "or a few more\n",
                  NotMeasured(topology));
  if (pairs.size() < 3) return text;
  const std::string slow = SlowPairs(pairs);
  return absl::StrCat(text, slow.empty() ? "no pair is slow\n" : slow);
}

}  // namespace troupe
