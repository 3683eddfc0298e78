#include "scheduler/simulate/topology.h"

#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "scheduler/simulate/gpu_link.h"
#include "scheduler/simulate/links.h"
#include "scheduler/simulate/rates.h"

namespace troupe {
namespace {

constexpr char kNobody[] = "nobody has measured it";
constexpr char kAssumedLink[] = "assumed";  // an adapter

// A link as it is said, without copies: there are many workers.
struct Said {
  LinkRate rate;
  RateSource source = ASSUMED;
  absl::string_view why;
};

TopologyLink LinkOf(const Said& said) {
  TopologyLink link;
  *link.mutable_rate() = said.rate;
  link.set_source(said.source);
  link.set_why(std::string(said.why));
  return link;
}

Said Say(const TopologyLink& link) {
  return {link.rate(), link.source(), link.why()};
}

// To others of its host.
Said WithinOf(const WorkerDescription& worker) {
  if (worker.has_gpu()) {
    if (const auto nccl = NcclLinkOf(worker.gpu()); nccl.has_value()) {
      return {*nccl, ASSUMED, "three quarters of what its data sheet says"};
    }
  }
  const Calibration& rates = worker.calibration();
  // Hardware that nobody has started a worker on is a file's.
  const RateSource source = worker.process_bytes() == 0 ? GIVEN : MEASURED;
  if (!worker.memory_domain().empty() && rates.has_shared_memory()) {
    return {rates.shared_memory(), source, ""};
  }
  if (rates.has_loopback()) return {rates.loopback(), source, ""};
  return {CompletedCalibration(rates).loopback(), ASSUMED, kNobody};
}

// To other hosts.
Said BetweenOf(const WorkerDescription& worker) {
  if (KnowsNetwork(worker)) return Say(worker.network());
  if (worker.nics_size() > 0) {
    return {NetworkOf(worker), worker.nics(0).link().source(), ""};
  }
  const std::string& why = worker.network().why();
  return {NetworkOf(worker), ASSUMED, why.empty() ? kNobody : why.c_str()};
}

// Those that carry what it sends there.
std::vector<Nic> NicsOf(const WorkerDescription& worker) {
  if (worker.nics_size() > 0 || KnowsNetwork(worker)) {
    return {worker.nics().begin(), worker.nics().end()};
  }
  Nic assumed;
  assumed.set_name(kAssumedLink);
  *assumed.mutable_link() = LinkOf(BetweenOf(worker));
  return {assumed};
}

struct Slowest {
  Said link;
  int count = 0;

  void Add(const Said& other) {
    const double rate = other.rate.bytes_per_second();
    if (count == 0 || rate < link.rate.bytes_per_second()) link = other;
    ++count;
  }
};

void AddTo(std::vector<LinkUsed>& used, const char* what,
           const Slowest& slowest) {
  if (slowest.count == 0) return;
  LinkUsed& link = used.emplace_back();
  link.set_what(what);
  *link.mutable_link() = LinkOf(slowest.link);
  link.set_count(slowest.count);
}

// Workers of a host that come one after the other, as most do.
template <typename Crew>
void ForEachCrew(absl::Span<const WorkerDescription> workers,
                 const Crew& crew) {
  for (size_t begin = 0; begin < workers.size();) {
    size_t end = begin + 1;
    while (end < workers.size() &&
           workers[end].host() == workers[begin].host()) {
      ++end;
    }
    crew(workers.subspan(begin, end - begin));
    begin = end;
  }
}

}  // namespace

Topology TopologyOf(
    const google::protobuf::RepeatedPtrField<WorkerStatus>& workers,
    const Topology& measured) {
  std::map<std::string, HostTopology> hosts;
  for (const WorkerStatus& status : workers) {
    if (status.state() != WorkerStatus::IDLE &&
        status.state() != WorkerStatus::BUSY) {
      continue;
    }
    const WorkerDescription& worker = status.description();
    HostTopology& host = hosts[worker.host()];
    host.set_host(worker.host());
    DeviceLinks& device = *host.add_devices();
    device.set_worker(worker.name());
    *device.mutable_within() = LinkOf(WithinOf(worker));
    *device.mutable_between() = LinkOf(BetweenOf(worker));
    for (Nic& nic : NicsOf(worker)) {
      int index = 0;
      while (index < host.nics_size() &&
             host.nics(index).name() != nic.name()) {
        ++index;
      }
      if (index == host.nics_size()) *host.add_nics() = std::move(nic);
      device.add_nics(index);
    }
  }
  for (const HostTopology& pairs : measured.hosts()) {
    const auto host = hosts.find(pairs.host());
    if (host != hosts.end()) *host->second.mutable_pairs() = pairs.pairs();
  }
  Topology topology;
  for (auto& [name, host] : hosts) *topology.add_hosts() = std::move(host);
  return topology;
}

std::vector<LinkUsed> LinksUsed(absl::Span<const WorkerDescription> workers) {
  absl::flat_hash_map<absl::string_view, size_t> hosts;  // workers of each
  ForEachCrew(workers, [&](absl::Span<const WorkerDescription> crew) {
    hosts[crew.front().host()] += crew.size();
  });
  Slowest within;
  Slowest between;
  Slowest adapter;
  std::set<std::pair<absl::string_view, absl::string_view>> known;
  ForEachCrew(workers, [&](absl::Span<const WorkerDescription> crew) {
    const absl::string_view host = crew.front().host();
    const bool shares = hosts.at(host) > 1;
    for (const WorkerDescription& worker : crew) {
      if (shares) within.Add(WithinOf(worker));
      if (hosts.size() == 1) continue;
      const Said link = BetweenOf(worker);
      between.Add(link);
      if (!shares) continue;
      for (const Nic& nic : worker.nics()) {
        if (known.emplace(host, nic.name()).second) {
          adapter.Add(Say(nic.link()));
        }
      }
      const bool assumed = worker.nics().empty() && !KnowsNetwork(worker);
      if (assumed && known.emplace(host, kAssumedLink).second)
        adapter.Add(link);
    }
  });
  std::vector<LinkUsed> used;
  AddTo(used, "within hosts", within);
  AddTo(used, "between hosts", between);
  AddTo(used, "shared adapters", adapter);
  return used;
}

}  // namespace troupe
