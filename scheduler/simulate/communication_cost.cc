// What the cost model says of communication: which links there are between the
// ranks of a group, and what an instruction puts on them.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "proto/plan/at_rest.h"
#include "proto/plan/groups.h"
#include "proto/plan/meeting.h"
#include "proto/plan/mesh.h"
#include "proto/plan/part_state.h"
#include "proto/plan/precision.h"
#include "proto/plan/roles.h"
#include "proto/plan/served.h"
#include "proto/plan/ways.h"
#include "scheduler/simulate/cost_model.h"
#include "scheduler/simulate/links.h"
#include "scheduler/simulate/traffic.h"

namespace troupe {
namespace {

// Whether the numbers that it exchanges have two bytes.
bool IsNarrow(const Plan& plan, const Instruction& collective) {
  if (collective.kind() == Instruction::REDUCE_SCALARS ||
      collective.kind() == Instruction::OUTER_REDUCE) {
    return false;
  }
  const bool gradients = collective.kind() == Instruction::REDUCE_GRADS ||
                         collective.kind() == Instruction::SCATTER_GRADS;
  const bool of_unit =
      gradients || collective.kind() == Instruction::GATHER_PARAMETERS;
  if (!of_unit) {
    return BytesOfElement(ComputeType(plan.job().training())) == 2;
  }
  const Unit& unit = plan.units(collective.unit());
  return BytesOfElement(gradients ? GradientsType(unit)
                                  : ParametersType(unit)) == 2;
}

// By role and group: to and from which places of the pipeline its transfers go.
using RolePeers = std::map<std::pair<int, int>, std::set<int>>;
RolePeers PeersOf(const Plan& plan) {
  RolePeers peers;
  for (int role = 0; role < plan.roles_size(); ++role) {
    for (const Program& program : plan.roles(role).programs()) {
      for (const Instruction& instruction : program.instructions()) {
        if (!IsTransfer(instruction.kind())) continue;
        peers[{role, instruction.group()}].insert(instruction.peer());
      }
    }
  }
  return peers;
}

// A few numbers are all latency: they keep no others from a link.
bool FillsLinks(const Instruction& collective) {
  return collective.kind() != Instruction::REDUCE_SCALARS;
}

}  // namespace

Operation OperationOf(const Plan& plan, int rank,
                      const Instruction& instruction) {
  return {.size = {.bytes = BusiestBytes(plan, rank, instruction),
                   .ranks =
                       GroupSize(plan.mesh(), plan.groups(instruction.group())),
                   .collective = CollectiveOf(instruction)},
          .backward = instruction.exchange().backward(),
          .narrow = IsNarrow(plan, instruction),
          .uneven = HasUnevenBlocks(plan, instruction)};
}

// Between ranks of one host.
const LinkRate& CostModel::LocalLink(int rank,
                                     const Group::Carrier& carrier) const {
  const Machine& machine = At(rank);
  if (carrier.backend() == "nccl") return machine.nccl;
  return carrier.backend() == "shared_memory"
             ? machine.calibration.shared_memory()
             : machine.calibration.loopback();
}

GroupLinks CostModel::LinksAmong(const std::vector<int>& ranks,
                                 const Group::Carrier& carrier) const {
  GroupLinks links;
  links.local = LocalLink(ranks.front(), carrier);
  links.network = At(ranks.front()).network;
  links.ranks = static_cast<int>(ranks.size());
  links.algorithms = AlgorithmsOf(carrier.backend());
  double share = 1;
  std::map<int, int> on_hosts;  // members by host
  for (size_t i = 0; i < ranks.size(); ++i) {
    const int rank = ranks[i];
    const int next = ranks[(i + 1) % ranks.size()];
    share = std::min(share, At(rank).communication_share);
    links.local = Slower(links.local, LocalLink(rank, carrier));
    links.network = Slower(links.network, At(rank).network);
    if (host_of_[rank] != host_of_[next]) ++links.crossings;
    ++on_hosts[host_of_[rank]];
  }
  links.local = Times(links.local, share);
  links.network = Times(links.network, share);
  links.hosts = static_cast<int>(on_hosts.size());
  links.fewest = links.ranks;
  for (const auto& [host, count] : on_hosts) {
    links.fewest = std::min(links.fewest, count);
    links.most = std::max(links.most, count);
  }
  return links;
}

// Of those members where each rank is, by rank; empty: all are on one host.
std::vector<GroupPlace> CostModel::PlacesIn(
    const std::vector<std::vector<int>>& groups) const {
  std::vector<GroupPlace> places;
  for (const std::vector<int>& ranks : groups) {
    std::map<int, int> on_hosts;
    std::map<int, int> servers;
    for (const int rank : ranks) {
      ++on_hosts[host_of_[rank]];
      if (IsServer(plan_, rank)) ++servers[host_of_[rank]];
    }
    if (on_hosts.size() <= 1) continue;
    places.resize(host_of_.size());
    const auto host_at = [&](size_t i) {
      return host_of_[ranks[i % ranks.size()]];
    };
    for (size_t i = 0; i < ranks.size(); ++i) {
      const int host = host_at(i);
      places[ranks[i]] = {.on_host = on_hosts.at(host),
                          .next_far = host_at(i + 1) != host,
                          .previous_far = host_at(i + ranks.size() - 1) != host,
                          .servers = servers[host]};
    }
  }
  return places;
}

GroupPlace CostModel::PlaceOf(int rank, int group) const {
  const GroupLinks& links = links_[group][numbers_[group][rank]];
  return links.hosts > 1 ? places_[group][rank]
                         : GroupPlace{.on_host = links.ranks};
}

// Of traffic over links as fast as these.
Cost CostModel::TrafficCost(const Traffic& traffic, const LinkRate& network,
                            const LinkRate& local) const {
  Cost cost;
  cost.communication = traffic.latency + traffic.moving;
  cost.on_wire = traffic.moving;
  for (const Link link : {NETWORK_OUT, NETWORK_IN, LOCAL_OUT, LOCAL_IN}) {
    const bool far = link == NETWORK_OUT || link == NETWORK_IN;
    cost.on_links[link] =
        traffic.bytes[link] / (far ? network : local).bytes_per_second();
  }
  cost.bytes = traffic.bytes;
  return cost;
}

Cost CostModel::TransferCost(int rank, const Instruction& instruction) const {
  const int group = instruction.group();
  const Group::Carrier& carrier =
      CarrierOf(plan_.groups(group), numbers_[group][rank]);
  const int peer = PeerRank(plan_.mesh(), rank, instruction.peer());
  const bool near = host_of_[rank] == host_of_[peer];
  const LinkRate link =
      near ? Slower(LocalLink(rank, carrier), LocalLink(peer, carrier))
           : Slower(At(rank).network, At(peer).network);
  const auto bytes = static_cast<double>(TransferBytes(plan_, instruction));
  Traffic traffic = {.latency = link.latency_us() * 1e-6,
                     .moving = bytes / link.bytes_per_second()};
  if (instruction.kind() == Instruction::SEND) {
    traffic.bytes[near ? LOCAL_OUT : NETWORK_OUT] = bytes;
  } else {
    traffic.bytes[near ? LOCAL_IN : NETWORK_IN] = bytes;
  }
  return TrafficCost(traffic, At(rank).network, LocalLink(rank, carrier));
}

// Replicas and servers: each server's slice between it and each replica. Of R
// replicas and S servers, with D bytes in all, a replica's link carries D and a
// server's R D / S.
Cost CostModel::ServedCost(int rank, const Instruction& instruction) const {
  const int group = instruction.group();
  const Placement& placement =
      *FindPlacement(RoleOf(plan_, rank), instruction.unit());
  const std::vector<int> ranks =
      MembersOf(plan_.mesh(), plan_.groups(group), rank);
  const std::vector<ServedMember> members =
      ServedMembers(plan_, placement, rank);
  const bool pushes = instruction.kind() == Instruction::PUSH;
  const Unit& unit = plan_.units(instruction.unit());
  const auto width = static_cast<double>(
      BytesOfElement(pushes ? GradientsType(unit) : ParametersType(unit)));
  const auto slice_of = [&](size_t m) {
    return static_cast<double>(members[m].slice.size()) * width;
  };
  // What a replica has with the servers of one host, and a server replicas.
  struct OnHost {
    double slices = 0;
    double replicas = 0;
  };
  OnHost all;
  std::map<int, OnHost> on_hosts;
  for (size_t m = 0; m < ranks.size(); ++m) {
    OnHost& on_host = on_hosts[host_of_[ranks[m]]];
    for (OnHost* const at : {&all, &on_host}) {
      if (members[m].is_server) {
        at->slices += slice_of(m);
      } else {
        at->replicas += 1;
      }
    }
  }
  std::map<int, OnLinks> bytes;  // by rank
  for (size_t m = 0; m < ranks.size(); ++m) {
    const bool serves = members[m].is_server;
    const bool sends = serves != pushes;
    const OnHost& near = on_hosts.at(host_of_[ranks[m]]);
    OnLinks& on_links = bytes[ranks[m]];
    on_links[sends ? LOCAL_OUT : LOCAL_IN] =
        serves ? slice_of(m) * near.replicas : near.slices;
    on_links[sends ? NETWORK_OUT : NETWORK_IN] =
        serves ? slice_of(m) * (all.replicas - near.replicas)
               : all.slices - near.slices;
  }
  const GroupLinks& links = links_[group].at(numbers_[group][rank]);
  Traffic traffic;
  traffic.bytes = bytes[rank];
  const LinkRate& farthest = links.hosts > 1 ? links.network : links.local;
  traffic.latency = 2e-6 * farthest.latency_us();
  for (const auto& [member, of_member] : bytes) {
    for (int link = 0; link < kLinks; ++link) {
      const bool far = link == NETWORK_OUT || link == NETWORK_IN;
      traffic.moving =
          std::max(traffic.moving,
                   of_member[link] /
                       (far ? links.network : links.local).bytes_per_second());
    }
  }
  const Machine& machine = At(rank);
  const Group::Carrier& carrier =
      CarrierOf(plan_.groups(group), numbers_[group][rank]);
  Cost cost =
      TrafficCost(traffic, Times(machine.network, machine.communication_share),
                  Times(LocalLink(rank, carrier), machine.communication_share));
  if (pushes && Serves(placement)) {
    // One block is copied, and each other one added.
    const auto touched =
        static_cast<double>((3 * ReplicasServed(plan_, placement) - 1) *
                            LargestTrainedAtRest(plan_, placement, rank));
    cost.elementwise =
        touched * width /
        (machine.calibration.memory_bytes_per_second() * machine.scale);
  }
  return cost;
}

Cost CostModel::CollectiveCost(int rank, const Instruction& instruction) const {
  Cost cost = GroupCost(rank, instruction.group(),
                        OperationOf(plan_, rank, instruction));
  if (FillsLinks(instruction)) return cost;
  return {.communication = cost.communication};
}

Cost CostModel::GroupCost(int rank, int group,
                          const Operation& operation) const {
  const Group::Way* const way =
      operation.uneven ? nullptr
                       : WayOf(plan_.groups(group), operation.size.collective,
                               operation.size.bytes);
  return way == nullptr ? FlatCost(rank, group, operation)
                        : WayCost(rank, group, *way, operation);
}

Cost CostModel::FlatCost(int rank, int group,
                         const Operation& operation) const {
  const int number = numbers_[group][rank];
  const double share = At(rank).communication_share;
  return TrafficCost(
      CollectiveTraffic(links_[group].at(number), PlaceOf(rank, group),
                        operation),
      Times(At(rank).network, share),
      Times(LocalLink(rank, CarrierOf(plan_.groups(group), number)), share));
}

// By group: whether its members' neighbours matter, not only how many there are
// on each host.
std::vector<bool> CostModel::HasRings() const {
  std::vector<bool> one_ring(places_.size());
  for (size_t g = 0; g < places_.size(); ++g) {
    one_ring[g] = std::any_of(links_[g].begin(), links_[g].end(),
                              [](const GroupLinks& links) {
                                return links.algorithms != Algorithms::kNccl;
                              });
  }
  std::vector<bool> has_rings(places_.size());
  for (const Role& role : plan_.roles()) {
    for (const Program& program : role.programs()) {
      for (const Instruction& instruction : program.instructions()) {
        if (!IsCollective(instruction.kind())) continue;
        if (!FillsLinks(instruction)) continue;
        const int group = instruction.group();
        if (one_ring[group] || CollectiveOf(instruction) == SHIFT) {
          has_rings[group] = true;
        }
      }
    }
  }
  return has_rings;
}

// What tells ranks of a group apart in what they put on their links.
std::array<int, 2> CostModel::ConnectionOf(int rank, int group,
                                           bool has_rings) const {
  if (places_[group].empty() || numbers_[group][rank] < 0) return {};
  const GroupPlace& place = places_[group][rank];
  const int neighbours =
      has_rings ? 2 * int{place.next_far} + int{place.previous_far} : 0;
  return {4 * place.on_host + neighbours, place.servers};
}

CostModel::UnlikeRanks CostModel::Unlike() const {
  UnlikeRanks unlike;
  std::set<std::vector<int>> known;
  std::map<std::string, int> kinds;  // of groups
  const std::vector<int> roles = RoleIndices(plan_);
  const std::vector<bool> has_rings = HasRings();
  const RolePeers peers = PeersOf(plan_);
  const int ranks = static_cast<int>(machine_of_.size());
  for (int g = 0; g < plan_.groups_size(); ++g) {
    for (int r = 0; r < ranks; ++r) {
      const int number = numbers_[g][r];
      if (number < 0) continue;
      const std::pair<int, int> place(roles[r], g);
      const int kind = kinds
                           .try_emplace(LookOf(links_[g][number]),
                                        static_cast<int>(kinds.size()))
                           .first->second;
      const auto [company, servers] = ConnectionOf(r, g, has_rings[g]);
      std::vector<int> look = {roles[r], g,       machine_of_[r],
                               kind,     company, servers};
      if (const auto ends = peers.find(place); ends != peers.end()) {
        for (const int end : ends->second) {
          const int peer = PeerRank(plan_.mesh(), r, end);
          look.insert(look.end(),
                      {machine_of_[peer], host_of_[peer] == host_of_[r]});
        }
      }
      if (known.insert(std::move(look)).second) unlike[place].push_back(r);
    }
  }
  return unlike;
}

Cost CostModel::BusiestCostOf(int rank, const Instruction& instruction,
                              const UnlikeRanks& unlike) const {
  Cost busiest = CostOf(rank, instruction);
  if (!Meets(instruction.kind())) return busiest;
  const auto ranks =
      unlike.find({RoleIndexOf(plan_, rank), instruction.group()});
  if (ranks == unlike.end()) return busiest;
  double latency = busiest.communication - busiest.on_wire;
  for (const int other : ranks->second) {
    const Cost cost = CostOf(other, instruction);
    latency = std::max(latency, cost.communication - cost.on_wire);
    busiest.on_wire = std::max(busiest.on_wire, cost.on_wire);
    for (int link = 0; link < kLinks; ++link) {
      busiest.on_links[link] =
          std::max(busiest.on_links[link], cost.on_links[link]);
      busiest.bytes[link] = std::max(busiest.bytes[link], cost.bytes[link]);
    }
  }
  busiest.communication = latency + busiest.on_wire;
  return busiest;
}

}  // namespace troupe
