#include "scheduler/cluster/link_measurements.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/base/one_line.h"

namespace troupe {
namespace {

constexpr size_t kPartners = 2;  // of each host
constexpr int kPairsMax = 16;    // kept of each host, the newest
constexpr char kNetwork[] = "network";
// Pairs that reach together so much of what as many would reach alone have an
// adapter each.
constexpr double kEachAlone = 0.9;
// More is no measurement.
constexpr double kTogetherMost = 1.25;

// So that hosts that differ by noise alone are alike: the planner tells ranks
// apart by their rates.
double TwoDigits(double value) {
  if (!(value > 0) || !std::isfinite(value)) return 0;
  const double unit = std::pow(10.0, std::floor(std::log10(value)) - 1);
  return std::round(value / unit) * unit;
}

LinkRate Rounded(const LinkRate& rate) {
  LinkRate rounded;
  rounded.set_latency_us(TwoDigits(rate.latency_us()));
  rounded.set_bytes_per_second(TwoDigits(rate.bytes_per_second()));
  return rounded;
}

TopologyLink Measured(const LinkRate& rate, const std::string& why) {
  TopologyLink link;
  *link.mutable_rate() = rate;
  link.set_source(MEASURED);
  link.set_why(why);
  return link;
}

// Of the first of its workers, which are alike.
double RateOf(const HostTopology& host) {
  if (host.devices().empty()) return 0;
  return host.devices(0).between().rate().bytes_per_second();
}

// In place of what was measured with that host before.
void AddPair(const std::string& other, const LinkRate& rate, absl::Time now,
             HostTopology& host) {
  auto& pairs = *host.mutable_pairs();
  pairs.erase(std::remove_if(
                  pairs.begin(), pairs.end(),
                  [&](const HostPair& pair) { return pair.host() == other; }),
              pairs.end());
  if (pairs.size() >= kPairsMax) pairs.erase(pairs.begin());
  HostPair& pair = *pairs.Add();
  pair.set_host(other);
  *pair.mutable_rate() = rate;
  pair.set_measured_unix_ms(absl::ToUnixMillis(now));
}

bool IsPlausible(const LinkRate& rate) {
  constexpr double kMost = 1e15;
  return rate.bytes_per_second() >= 1 && rate.bytes_per_second() < kMost &&
         rate.latency_us() >= 0 && rate.latency_us() < 1e9;
}

}  // namespace

void LinkMeasurements::Restore(std::vector<HostTopology> hosts,
                               absl::Time now) {
  for (HostTopology& links : hosts) {
    Host& host = hosts_[links.host()];
    host.measured = host.tried = now;
    host.workers = -1;  // any that come
    host.links = std::move(links);
  }
}

Topology LinkMeasurements::Pairs() const {
  Topology topology;
  for (const auto& [name, host] : hosts_) {
    if (host.links.pairs().empty()) continue;
    HostTopology& of_host = *topology.add_hosts();
    of_host.set_host(name);
    *of_host.mutable_pairs() = host.links.pairs();
  }
  return topology;
}

bool LinkMeasurements::IsMeasured(const std::string& host) const {
  const auto found = hosts_.find(host);
  return found != hosts_.end() && RateOf(found->second.links) > 0;
}

void LinkMeasurements::Registered(Worker& worker) {
  WorkerDescription& description = *worker.status.mutable_description();
  description.clear_network();
  description.clear_nics();
  const auto found = hosts_.find(description.host());
  if (found == hosts_.end()) return;
  const Host& host = found->second;
  if (!IsMeasured(description.host())) {
    if (!host.why.empty()) {
      description.mutable_network()->set_why(host.why);
    }
    return;
  }
  *description.mutable_network() = host.links.devices(0).between();
  *description.mutable_nics() = host.links.nics();
}

void LinkMeasurements::Show(const std::string& host) {
  for (const Worker* const worker : workers_.Alive()) {
    if (worker->status.description().host() != host) continue;
    Registered(*workers_.Find(worker->id));
  }
}

std::map<std::string, LinkMeasurements::Crew> LinkMeasurements::Crews() const {
  std::map<std::string, Crew> crews;
  for (const Worker* const worker : workers_.Alive()) {
    Crew& crew = crews[worker->status.description().host()];
    crew.workers.push_back(worker);
    crew.idle &= worker->available() && worker->measures_links;
  }
  return crews;
}

bool LinkMeasurements::NeedsOne(const std::string& host, const Crew& crew,
                                size_t hosts, absl::Time now) const {
  const auto found = hosts_.find(host);
  if (found == hosts_.end()) return true;
  const Host& known = found->second;
  const absl::Duration since = now - known.tried;
  if (!IsMeasured(host)) {
    const int doublings = std::clamp(known.failed - 1, 0, 16);
    return since >= std::min(limits_.measure_again,
                             limits_.measure_soon_again * (1 << doublings));
  }
  const bool others = known.workers >= 0 &&
                      known.workers != static_cast<int>(crew.workers.size());
  if (others && since >= limits_.measure_again) return true;
  if (now - known.measured >= limits_.measure_anew) return true;
  // Nothing is known of the partners of one that was measured before.
  return known.workers >= 0 &&
         known.partners.size() < std::min(kPartners, hosts - 1) &&
         known.why.empty();
}

void LinkMeasurements::Tick(bool may_begin, absl::Time now, Actions& actions) {
  for (auto it = measurements_.begin(); it != measurements_.end();) {
    const auto late = it++;
    // A little longer than the workers themselves take to give up.
    if (now - late->second.began > limits_.measure_max + absl::Seconds(1)) {
      End(late, now, actions);
    }
  }
  if (!may_begin || under_way() >= limits_.measurements_max) return;
  if (looked_at_ == workers_.changes() &&
      now - looked_ < limits_.measure_look_every) {
    return;
  }
  looked_at_ = workers_.changes();
  looked_ = now;
  const std::map<std::string, Crew> crews = Crews();
  std::set<std::string> taken;
  for (const auto& [number, measurement] : measurements_) {
    taken.insert(std::begin(measurement.hosts), std::end(measurement.hosts));
  }
  const auto free = [&](const std::string& host, const Crew& crew) {
    return crew.idle && taken.count(host) == 0;
  };
  for (const auto& [host, crew] : crews) {
    if (under_way() >= limits_.measurements_max) return;
    if (!free(host, crew) || !NeedsOne(host, crew, crews.size(), now)) continue;
    // Rather one that is to be measured, too, and was not with this one; of
    // others the fastest.
    const std::string* best = nullptr;
    std::pair<bool, double> worth;
    for (const auto& [other, its_crew] : crews) {
      if (other == host || !free(other, its_crew)) continue;
      if (hosts_[host].partners.count(other) > 0) continue;
      const std::pair<bool, double> of = {
          NeedsOne(other, its_crew, crews.size(), now),
          RateOf(hosts_[other].links)};
      if (best != nullptr && of <= worth) continue;
      best = &other;
      worth = of;
    }
    if (best == nullptr) continue;
    taken.insert({host, *best});
    Begin(host, *best, crews, now, actions);
  }
}

void LinkMeasurements::Begin(const std::string& one, const std::string& other,
                             const std::map<std::string, Crew>& crews,
                             absl::Time now, Actions& actions) {
  const auto it = measurements_.emplace(next_++, limits_).first;
  Measurement& measurement = it->second;
  measurement.hosts[0] = one;
  measurement.hosts[1] = other;
  measurement.began = now;
  size_t each = limits_.measure_workers_max;
  for (const std::string& host : measurement.hosts) {
    each = std::min(each, crews.at(host).workers.size());
    Host& known = hosts_[host];
    known.tried = now;
    const int workers = static_cast<int>(crews.at(host).workers.size());
    // What is measured from here on is of another set of workers.
    const bool anew = known.workers != workers ||
                      now - known.measured >= limits_.measure_anew;
    if (anew) known.partners.clear();
    known.workers = workers;
  }
  MeasureLinks request;
  request.set_measurement(it->first);
  request.set_seconds_max(absl::ToDoubleSeconds(limits_.measure_max));
  request.set_bytes_max(limits_.measure_bytes_max);
  for (const std::string& host : measurement.hosts) {
    for (size_t i = 0; i < each; ++i) {
      const Worker& worker = *crews.at(host).workers[i];
      measurement.members.push_back(
          {.worker = worker.id, .name = worker.name()});
      request.add_worker_names(worker.name());
    }
  }
  for (size_t rank = 0; rank < measurement.members.size(); ++rank) {
    SendToWorker send{measurement.members[rank].worker, {}};
    request.set_rank(static_cast<int>(rank));
    *send.message.mutable_measure_links() = request;
    actions.push_back(std::move(send));
  }
}

LinkMeasurements::Measurements::iterator LinkMeasurements::Find(
    int64_t measurement, WorkerId from, int& rank) {
  const auto it = measurements_.find(measurement);
  if (it == measurements_.end()) return it;
  const std::vector<Member>& members = it->second.members;
  const auto member =
      std::find_if(members.begin(), members.end(),
                   [from](const Member& of) { return of.worker == from; });
  if (member == members.end()) return measurements_.end();
  rank = static_cast<int>(member - members.begin());
  return it;
}

void LinkMeasurements::HandleMessage(WorkerId from,
                                     const WorkerMessage& message,
                                     absl::Time now, Actions& actions) {
  if (message.has_store_set()) return Set(from, message.store_set(), actions);
  if (message.has_store_get()) return Get(from, message.store_get(), actions);
  const LinksMeasured& said = message.links_measured();
  int rank = 0;
  const auto it = Find(said.measurement(), from, rank);
  if (it == measurements_.end()) return;
  Measurement& measurement = it->second;
  Member& member = measurement.members[rank];
  if (member.answered) return;
  member.answered = true;
  member.together = said.together_bytes_per_second();
  std::string error = OneLine(said.error(), limits_.reason_bytes_max);
  if (error.empty() && rank == 0) {
    measurement.alone = said.alone();
    if (!IsPlausible(said.alone())) error = "it measured no rate";
  }
  if (!error.empty() && measurement.error.empty()) {
    measurement.error = absl::StrCat(member.name, ": ", error);
  }
  const bool all =
      std::all_of(measurement.members.begin(), measurement.members.end(),
                  [](const Member& of) { return of.answered; });
  if (all || !measurement.error.empty()) End(it, now, actions);
}

void LinkMeasurements::Set(WorkerId from, const StoreSet& set,
                           Actions& actions) {
  int rank = 0;
  const auto it = Find(set.ref().measurement(), from, rank);
  if (it == measurements_.end()) return;
  const auto waited = it->second.rendezvous.Set(set.key(), set.value());
  if (!waited.ok()) return;  // then it is late
  for (const int other : *waited) {
    SendToWorker send{it->second.members[other].worker, {}};
    StoreValue& value = *send.message.mutable_store_value();
    value.mutable_ref()->set_measurement(it->first);
    value.mutable_ref()->set_rank(other);
    value.set_key(set.key());
    value.set_value(set.value());
    actions.push_back(std::move(send));
  }
}

void LinkMeasurements::Get(WorkerId from, const StoreGet& get,
                           Actions& actions) {
  int rank = 0;
  const auto it = Find(get.ref().measurement(), from, rank);
  if (it == measurements_.end()) return;
  const auto found = it->second.rendezvous.Get(rank, get.key());
  if (!found.ok() || *found == nullptr) return;
  SendToWorker send{from, {}};
  StoreValue& value = *send.message.mutable_store_value();
  *value.mutable_ref() = get.ref();
  value.set_key(get.key());
  value.set_value(**found);
  actions.push_back(std::move(send));
}

void LinkMeasurements::StopMembers(const Measurements::value_type& of,
                                   Actions& actions) const {
  for (const Member& member : of.second.members) {
    const Worker* const worker = workers_.Find(member.worker);
    if (member.answered || worker == nullptr || !worker->alive()) continue;
    SendToWorker send{member.worker, {}};
    send.message.mutable_stop_measuring()->set_measurement(of.first);
    actions.push_back(std::move(send));
  }
}

void LinkMeasurements::End(Measurements::iterator it, absl::Time now,
                           Actions& actions) {
  Measurement& measurement = it->second;
  if (measurement.error.empty()) {
    std::vector<std::string> silent;
    for (const Member& member : measurement.members) {
      if (!member.answered) silent.push_back(member.name);
    }
    if (!silent.empty()) {
      measurement.error =
          absl::StrCat(absl::StrJoin(silent, ", "), " did not answer within ",
                       absl::FormatDuration(limits_.measure_max));
    }
  }
  StopMembers(*it, actions);
  for (const int side : {0, 1}) Note(measurement, side, now, actions);
  measurements_.erase(it);
  looked_ = absl::InfinitePast();  // others may be measured now
}

void LinkMeasurements::Note(const Measurement& measurement, int side,
                            absl::Time now, Actions& actions) {
  const std::string& name = measurement.hosts[side];
  const std::string& other = measurement.hosts[1 - side];
  Host& host = hosts_[name];
  if (!measurement.error.empty()) {
    ++host.failed;
    host.why =
        absl::StrCat("not measured with ", other, ": ", measurement.error);
    if (!IsMeasured(name)) Show(name);
    return;
  }
  const bool anew = host.partners.empty();
  host.partners.insert(other);
  host.measured = now;
  host.why.clear();
  host.failed = 0;
  const LinkRate alone = Rounded(measurement.alone);
  AddPair(other, alone, now, host.links);
  if (!anew && alone.bytes_per_second() <= RateOf(host.links)) {
    actions.push_back(PersistHostLinks{host.links});
    return;
  }
  const size_t each = measurement.members.size() / 2;
  // A member that is done first leaves the adapter to the others: the last says
  // how fast all of them were.
  double last = measurement.members[side * each].together;
  for (size_t i = 1; i < each; ++i) {
    last = std::min(last, measurement.members[side * each + i].together);
  }
  double together = last * static_cast<double>(each);
  together = std::clamp(
      TwoDigits(together), alone.bytes_per_second(),
      kTogetherMost * static_cast<double>(each) * alone.bytes_per_second());
  const std::string why =
      absl::StrCat("with ", other, ", ",
                   absl::FormatTime("%Y-%m-%d", now, absl::UTCTimeZone()));
  host.links.clear_nics();
  host.links.clear_devices();
  host.links.set_host(name);
  *host.links.add_devices()->mutable_between() = Measured(alone, why);
  // Of those that did not take part nobody knows what they would add.
  const bool all = static_cast<int>(each) == host.workers;
  const bool own = all && together >= kEachAlone * static_cast<double>(each) *
                                          alone.bytes_per_second();
  if (!own) {
    LinkRate shared = alone;
    shared.set_bytes_per_second(together);
    Nic& nic = *host.links.add_nics();
    nic.set_name(kNetwork);
    *nic.mutable_link() = Measured(shared, why);
    host.links.mutable_devices(0)->add_nics(0);
  }
  actions.push_back(PersistHostLinks{host.links});
  Show(name);
}

void LinkMeasurements::Review(absl::Time now, Actions& actions) {
  if (measurements_.empty() || reviewed_at_ == workers_.changes()) return;
  reviewed_at_ = workers_.changes();
  std::map<std::string, bool> works;
  for (const Worker* const worker : workers_.Alive()) {
    works[worker->status.description().host()] |=
        worker->status.state() == WorkerStatus::BUSY;
  }
  for (auto it = measurements_.begin(); it != measurements_.end();) {
    const auto at = it++;
    Measurement& measurement = at->second;
    if (works[measurement.hosts[0]] || works[measurement.hosts[1]]) {
      StopMembers(*at, actions);
      // As if it had not been begun.
      for (const std::string& host : measurement.hosts) {
        hosts_[host].tried = absl::InfinitePast();
      }
      measurements_.erase(at);
      continue;
    }
    for (const Member& member : measurement.members) {
      const Worker* const worker = workers_.Find(member.worker);
      if (worker != nullptr && worker->alive()) continue;
      measurement.error = absl::StrCat(member.name, " was lost");
      End(at, now, actions);
      break;
    }
  }
}

void LinkMeasurements::Forgive(absl::Duration time, absl::Time now) {
  for (auto& [number, measurement] : measurements_) {
    measurement.began = std::min(measurement.began + time, now);
  }
}

}  // namespace troupe
