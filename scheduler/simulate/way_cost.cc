// What the cost model says of exchanges that go over several communicators
// (Group.ways): each step by the formulas of traffic.h, on the links of its
// level.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/plan/groups.h"
#include "proto/plan/way_bytes.h"
#include "proto/plan/ways.h"
#include "scheduler/simulate/cost_model.h"
#include "scheduler/simulate/links.h"
#include "scheduler/simulate/traffic.h"

namespace troupe {
namespace {

constexpr double kCopyPasses = 2;  // a block is read and written

GroupLinks SlowerLinks(const GroupLinks& a, const GroupLinks& b) {
  GroupLinks slower = a;
  slower.local = Slower(a.local, b.local);
  slower.network = Slower(a.network, b.network);
  slower.hosts = std::max(a.hosts, b.hosts);
  slower.fewest = std::min(a.fewest, b.fewest);
  slower.most = std::max(a.most, b.most);
  slower.crossings = std::max(a.crossings, b.crossings);
  if (b.algorithms == Algorithms::kGloo) slower.algorithms = b.algorithms;
  return slower;
}

Cost SumOf(Cost cost, const Cost& more, double times) {
  cost.communication += times * more.communication;
  cost.on_wire += times * more.on_wire;
  for (int link = 0; link < kLinks; ++link) {
    cost.on_links[link] += times * more.on_links[link];
    cost.bytes[link] += times * more.bytes[link];
  }
  return cost;
}

// How often all blocks are copied, to be packed and from there
// (worker/collective/levels.h).
int CopiesOf(const Group::Way& way) {
  if (!PacksBlocks(way.collective())) return 0;
  return way.collective() == ALL_TO_ALL ? way.steps_size() + 1 : 1;
}

// The part of the calls of a step in which the member takes part: of
// broadcasts that have each member as root once.
double ShareOfCalls(const Group& group, const Group::Way& way, int step,
                    int member) {
  if (way.collective() != BROADCAST) {
    return TakesPart(group, way, member, {.step = step}) ? 1 : 0;
  }
  double share = 1;
  for (int s = step + 1; s < way.steps_size(); ++s) {
    share /= group.levels(way.steps(s).level()).size();
  }
  return share;
}

WayBuffer BufferOf(const Operation& operation) {
  const int element_bytes = operation.narrow ? 2 : 4;
  return {
      .elements = (operation.size.bytes + element_bytes - 1) / element_bytes,
      .element_bytes = element_bytes};
}

// Of what each step takes with all of `pieces`: one after the other, or, where
// levels work at once, until the busiest level has done, while the others are
// behind by what they do with one piece.
double TogetherOver(const Group::Way& way, int64_t pieces,
                    const std::vector<double>& of_steps) {
  std::map<int, double> levels;
  double all = 0;
  for (int s = 0; s < way.steps_size(); ++s) {
    levels[way.steps(s).level()] += of_steps[s];
    all += of_steps[s];
  }
  if (!Overlaps(way)) return all;
  double busiest = 0;
  for (const auto& [level, time] : levels) busiest = std::max(busiest, time);
  return busiest + (all - busiest) / static_cast<double>(pieces);
}

}  // namespace

std::vector<int> CostModel::HostsOf(int group, int number) const {
  std::vector<int> hosts;
  for (const int rank : members_[group][number]) {
    hosts.push_back(host_of_[rank]);
  }
  return hosts;
}

std::vector<GroupLinks> CostModel::LevelLinksOf(const Group& group,
                                                int number) const {
  const std::vector<int>& ranks = members_.back()[number];
  const Group::Carrier& carrier = CarrierOf(group, number);
  std::vector<GroupLinks> links(group.levels_size());
  for (int l = 0; l < group.levels_size(); ++l) {
    const Group::Level& level = group.levels(l);
    bool first = true;
    for (int m = 0; m < static_cast<int>(ranks.size()); ++m) {
      if (PlaceOn(level, m) != 0) continue;
      std::vector<int> members = MembersOn(level, m);
      for (int& member : members) member = ranks[member];
      Group::Carrier of_level;
      of_level.set_backend(BackendOn(carrier, l, NumberOn(level, m)));
      const GroupLinks these = LinksAmong(members, of_level);
      links[l] = first ? these : SlowerLinks(links[l], these);
      first = false;
    }
    links[l].in_order = level.in_order();
  }
  return links;
}

// Of a member of some communicator of the level, in which all are on one host
// or each on one of its own, unless ranks have moved.
GroupPlace CostModel::PlaceOnLevel(const std::vector<int>& ranks, int member,
                                   const Group::Level& level,
                                   const GroupLinks& links) const {
  const int count = level.size();
  if (links.hosts == 1) return {.on_host = count};
  if (links.most == 1) return {.next_far = true, .previous_far = true};
  const std::vector<int> members = MembersOn(level, member);
  const auto host_at = [&](int i) {
    return host_of_[ranks[members[i % count]]];
  };
  const int index = PlaceOn(level, member);
  const int host = host_at(index);
  GroupPlace place = {.on_host = 0,
                      .next_far = host_at(index + 1) != host,
                      .previous_far = host_at(index + count - 1) != host};
  for (int i = 0; i < count; ++i) place.on_host += host_at(i) == host ? 1 : 0;
  return place;
}

Cost CostModel::StepCost(const StepAt& at, const Group::Way& way,
                         const Operation& operation) const {
  const Group& group = plan_.groups(at.group);
  const int number = numbers_[at.group][at.rank];
  const std::vector<int>& ranks = members_[at.group][number];
  const Group::Step& step = way.steps(at.step);
  const Group::Level& level = group.levels(step.level());
  const int member = static_cast<int>(
      std::lower_bound(ranks.begin(), ranks.end(), at.rank) - ranks.begin());
  const GroupLinks& links = level_links_[at.group][number][step.level()];
  const WayBuffer buffer = BufferOf(operation);
  const auto count = static_cast<int>(ranks.size());
  const int64_t pieces = PiecesOf(way, count, buffer);
  const StepBytes moved = BytesOfSteps(group, way, count, buffer)[at.step];
  // The pieces of a reduce go to the root as those of an all-reduce go round:
  // no fewer steps one after the other.
  const Operation of_step = {.size = {.bytes = moved.whole,
                                      .ranks = level.size(),
                                      .collective = step.collective()},
                             .narrow = operation.narrow};
  Group::Carrier carrier;
  carrier.set_backend(BackendOn(CarrierOf(group, number), step.level(),
                                NumberOn(level, member)));
  const double share = At(at.rank).communication_share;
  const Cost once = TrafficCost(
      CollectiveTraffic(links, PlaceOnLevel(ranks, member, level, links),
                        of_step),
      Times(At(at.rank).network, share),
      Times(LocalLink(at.rank, carrier), share));
  Cost cost = SumOf(Cost(), once, static_cast<double>(pieces));
  // A member that takes no part waits as long.
  const double calls = ShareOfCalls(group, way, at.step, member);
  for (int link = 0; link < kLinks; ++link) {
    cost.on_links[link] *= calls;
    cost.bytes[link] *= calls;
  }
  return cost;
}

// Of blocks that are packed: their copies, and the rows that not all have.
Cost CostModel::BesideSteps(int rank, int group, const Group::Way& way,
                            const Operation& operation) const {
  if (!PacksBlocks(way.collective())) return {};
  const Cost copies = {.communication =
                           CopiesOf(way) * kCopyPasses *
                           static_cast<double>(operation.size.bytes) /
                           At(rank).calibration.memory_bytes_per_second()};
  const WayBuffer buffer = BufferOf(operation);
  const int rest =
      ExtentOf({.elements = buffer.elements}, operation.size.ranks).longer;
  if (rest == 0) return copies;
  Operation of_rest = operation;
  of_rest.size.bytes = int64_t{rest} * buffer.element_bytes;
  return SumOf(copies, FlatCost(rank, group, of_rest), 1);
}

Cost CostModel::WayCost(int rank, int group, const Group::Way& way,
                        const Operation& operation) const {
  return SumOf(BesideSteps(rank, group, way, operation),
               StepsCost(rank, group, way, operation), 1);
}

Cost CostModel::StepsCost(int rank, int group, const Group::Way& way,
                          const Operation& operation) const {
  Cost cost;
  std::vector<double> communication;
  std::vector<double> on_wire;
  for (int s = 0; s < way.steps_size(); ++s) {
    const Cost of_step =
        StepCost({.group = group, .rank = rank, .step = s}, way, operation);
    communication.push_back(of_step.communication);
    on_wire.push_back(of_step.on_wire);
    cost = SumOf(cost, of_step, 1);
  }
  const int64_t pieces =
      PiecesOf(way, operation.size.ranks, BufferOf(operation));
  // Levels that share a link take turns on it.
  cost.on_wire = TogetherOver(way, pieces, on_wire);
  for (const double full : cost.on_links) {
    cost.on_wire = std::max(cost.on_wire, full);
  }
  cost.communication =
      std::max(cost.on_wire, TogetherOver(way, pieces, communication));
  return cost;
}

// Of what these ranks put on their links at once, costs[i] of ranks[i]: until
// the last has done, and the last adapter that some share.
double CostModel::AloneSeconds(const std::vector<int>& ranks,
                               const std::vector<Cost>& costs) const {
  double seconds = 0;
  double wire = 0;
  for (const Cost& cost : costs) {
    seconds = std::max(seconds, cost.communication);
    wire = std::max(wire, cost.on_wire);
  }
  if (adapters_.of_rank.empty()) return seconds;
  std::map<int, double> busy;  // by adapter
  for (size_t i = 0; i < ranks.size(); ++i) {
    const std::vector<int>& used = adapters_.of_rank[ranks[i]];
    for (const int adapter : used) {
      busy[adapter] +=
          costs[i].bytes[NETWORK_OUT] /
          (adapters_.rates[adapter] * static_cast<double>(used.size()));
    }
  }
  double crowded = 0;
  for (const auto& [adapter, time] : busy) crowded = std::max(crowded, time);
  return seconds + std::max(0.0, crowded - wire);
}

bool CostModel::SpansHosts(int group) const {
  return std::any_of(links_[group].begin(), links_[group].end(),
                     [](const GroupLinks& links) { return links.hosts > 1; });
}

// They stand for those of all hosts: the links of a group are the slowest, and
// choosing a way must not take a time for each rank of thousands.
std::vector<int> CostModel::OnFirstHost(int group, int number) const {
  const std::vector<int>& members = members_[group][number];
  std::vector<int> ranks;
  for (const int rank : members) {
    if (host_of_[rank] == host_of_[members.front()]) ranks.push_back(rank);
  }
  return ranks;
}

// The first of each look: its links and levels, and of the ranks that stand for
// it their machines and the rates of their adapters. Where no group spans
// hosts, the first stands for all.
std::vector<int> CostModel::UnlikeGroups(int group) const {
  if (!SpansHosts(group)) return {0};
  std::vector<int> unlike;
  std::set<std::string> looks;
  for (int n = 0; n < static_cast<int>(members_[group].size()); ++n) {
    std::string look = LookOf(links_[group][n]);
    for (const GroupLinks& level : level_links_[group][n]) {
      absl::StrAppend(&look, "|", LookOf(level));
    }
    for (const int rank : OnFirstHost(group, n)) {
      absl::StrAppend(&look, "|", machine_of_[rank]);
      if (adapters_.of_rank.empty()) continue;
      for (const int adapter : adapters_.of_rank[rank]) {
        absl::StrAppend(&look, ",", adapters_.rates[adapter]);
      }
    }
    if (looks.insert(std::move(look)).second) unlike.push_back(n);
  }
  return unlike;
}

std::vector<double> CostModel::StepSecondsAt(const GroupAt& at,
                                             const Group::Way& way,
                                             const Operation& operation) const {
  const std::vector<int> ranks = OnFirstHost(at.group, at.number);
  std::vector<double> seconds;
  for (int s = 0; s < way.steps_size(); ++s) {
    std::vector<Cost> costs;
    for (const int rank : ranks) {
      costs.push_back(StepCost({.group = at.group, .rank = rank, .step = s},
                               way, operation));
    }
    seconds.push_back(AloneSeconds(ranks, costs));
  }
  return seconds;
}

double CostModel::WaySecondsAt(const GroupAt& at, const Group::Way& way,
                               const Operation& operation) const {
  const std::vector<int> ranks = OnFirstHost(at.group, at.number);
  if (way.steps().empty()) {
    std::vector<Cost> costs;
    for (const int rank : ranks) {
      costs.push_back(FlatCost(rank, at.group, operation));
    }
    return AloneSeconds(ranks, costs);
  }
  const int64_t pieces =
      PiecesOf(way, operation.size.ranks, BufferOf(operation));
  double seconds = TogetherOver(way, pieces, StepSecondsAt(at, way, operation));
  if (Overlaps(way)) {
    // Levels that share a link or an adapter take turns on it.
    std::vector<Cost> costs;
    for (const int rank : ranks) {
      costs.push_back(StepsCost(rank, at.group, way, operation));
    }
    seconds = std::max(seconds, AloneSeconds(ranks, costs));
  }
  return seconds +
         BesideSteps(ranks.front(), at.group, way, operation).communication;
}

double CostModel::WaySeconds(int group, const Group::Way& way,
                             const Operation& operation) const {
  double slowest = 0;
  for (const int number : unlike_[group]) {
    slowest = std::max(slowest, WaySecondsAt({.group = group, .number = number},
                                             way, operation));
  }
  return slowest;
}

std::vector<double> CostModel::StepSeconds(int group, const Group::Way& way,
                                           const Operation& operation) const {
  const auto seconds = [&](int number) {
    return WaySecondsAt({.group = group, .number = number}, way, operation);
  };
  const int slowest =
      *std::max_element(unlike_[group].begin(), unlike_[group].end(),
                        [&](int a, int b) { return seconds(a) < seconds(b); });
  return StepSecondsAt({.group = group, .number = slowest}, way, operation);
}

}  // namespace troupe
