#include "scheduler/planner/lay_groups.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/plan/copies.h"
#include "proto/plan/edges.h"
#include "proto/plan/groups.h"
#include "proto/plan/islands.h"
#include "proto/plan/mesh.h"
#include "proto/plan/replica_share.h"
#include "proto/plan/roles.h"
#include "proto/plan/served.h"
#include "proto/plan/slices.h"
#include "proto/plan/strategies.h"
#include "scheduler/layouts/axes.h"
#include "scheduler/layouts/zero.h"
#include "scheduler/passes/draft.h"

namespace troupe {
namespace {

using Places = std::set<int>;  // on the pipeline

// By unit.
std::vector<Places> Holders(const Plan& plan) {
  std::vector<Places> holders(plan.units_size());
  for (const Stage& stage : plan.stages()) {
    for (int u = stage.unit(); u < stage.unit() + stage.unit_count(); ++u) {
      for (const int owner : GradientUnits(plan, u)) {
        holders[owner].insert(stage.pipeline_ranks().begin(),
                              stage.pipeline_ranks().end());
      }
    }
  }
  return holders;
}

const Stage& StageOf(const Plan& plan, int unit) {
  for (const Stage& stage : plan.stages()) {
    if (unit < stage.unit() + stage.unit_count()) return stage;
  }
  CHECK(false) << "no stage has unit " << unit;
  return plan.stages(0);
}

// The places that hand gradients to a stage before, or get them from one
// behind.
Places GradientPlaces(const Plan& plan) {
  Places places;
  const Edges edges(plan);
  for (const Edge& edge : edges.all()) {
    const Stage& from = StageOf(plan, edge.from);
    const Stage& to = StageOf(plan, edge.to);
    if (!edge.has_gradient || &from == &to) continue;
    for (const Stage* const stage : {&from, &to}) {
      places.insert(stage->pipeline_ranks().begin(),
                    stage->pipeline_ranks().end());
    }
  }
  return places;
}

bool CutsParameters(const std::string& axis, const Unit& unit,
                    const Range& part) {
  for (const Parameter& parameter : unit.parameters()) {
    if (parameter.offset() < part.begin || parameter.offset() >= part.end) {
      continue;
    }
    for (const Dim& dim : parameter.dims()) {
      if (CutBy(dim.sections(0), axis) != nullptr) return true;
    }
  }
  return false;
}

// Over which ranks a unit is dealt, or a part of it.
class Dealing {
 public:
  // `strategy`: of the unit.
  Dealing(const Mesh& mesh, const ParallelismSpec& job,
          const ParallelismSpec& strategy) {
    for (const Axis& axis : mesh.axes()) {
      along_[axis.name()] = ZeroSizeAlong(axis.name(), strategy);
    }
    const auto spans = SpansOf(strategy, FactorsOf(job));
    CHECK(spans.has_value()) << "strategies were checked";
    for (const FactorSpan& span : *spans) {
      const std::vector<int> sizes =
          SizesAlong(span, ZeroSizeAlong(span.name, strategy));
      for (size_t a = 0; a < sizes.size(); ++a) {
        along_[span.axes[a].name()] = sizes[a];
      }
    }
  }

  // How many neighbours along an axis of the mesh; 1: not along it.
  int Along(const std::string& axis) const { return along_.at(axis); }

  // Ranks that have other pieces of the part's parameters, such as other
  // experts, do not share slices of them.
  Dealing OfPart(const Unit& unit, int part) const {
    Dealing of_part = *this;
    for (auto& [axis, ranks] : of_part.along_) {
      if (ranks > 1 && CutsParameters(axis, unit, RangeOfPart(unit, part))) {
        ranks = 1;
      }
    }
    return of_part;
  }

 private:
  std::map<std::string, int> along_;
};

std::vector<Dealing> DealingOfUnits(const Plan& plan) {
  const ParallelismSpec& job = plan.job().parallelism();
  std::vector<Dealing> of_strategies = {Dealing(plan.mesh(), job, job)};
  for (const StrategySpec& strategy : job.strategies()) {
    of_strategies.emplace_back(plan.mesh(), job,
                               DealtWithStrategy(job, strategy));
  }
  std::vector<Dealing> of_units;
  for (const int s :
       StrategyOfUnits(job, KindsOf(plan.units()), plan.stages())) {
    of_units.push_back(of_strategies[s + 1]);
  }
  return of_units;
}

// Nobody where it is not dealt.
Group DealtGroup(const Plan& plan, const Dealing& dealing) {
  Group group;
  for (const Axis& axis : plan.mesh().axes()) {
    const int ranks = dealing.Along(axis.name());
    if (ranks == 1) continue;
    Group::Span& span = *group.add_spans();
    span.set_axis(axis.name());
    if (ranks < axis.size()) span.set_block(ranks);
  }
  return group;
}

// What no rank changes need not be gathered, unless no rank has all of it.
bool MayBeDealt(const Plan& plan, const Unit::Part& part) {
  return !part.frozen() || ZeroRowOf(plan.job().parallelism()).parameters;
}

// Those that have the same of a part; `sums`: or a summand of it. Of a part
// that is dealt, or served, of the same slice.
Group Alike(const Plan& plan, const Places& holders, const Dealing& dealing,
            const Unit::Part& part, bool sums) {
  Group group;
  for (const Axis& axis : plan.mesh().axes()) {
    Group::Span span;
    span.set_axis(axis.name());
    int ranks = 1;
    if (axis.name() == kPipelineAxis) {
      ranks = static_cast<int>(holders.size());
      if (ranks < axis.size()) {
        for (const int place : holders) span.add_places(place);
      }
    }
    for (const Unit::Part::Share& share : part.shares()) {
      if (share.axis() != axis.name() || (sums && !share.summed())) continue;
      // What servers keep, nobody else has.
      if (HasServers(plan) && axis.name() == kServerAxis) continue;
      ranks = share.copies();
      if (ranks < axis.size()) span.set_block(ranks);
    }
    const int slices = MayBeDealt(plan, part) ? dealing.Along(axis.name()) : 1;
    if (slices > 1) {
      ranks /= slices;
      span.set_stride(slices);
    }
    if (ranks > 1) *group.add_spans() = span;
  }
  return group;
}

class GroupLayout {
 public:
  explicit GroupLayout(Plan& plan) : plan_(plan) {}

  // Sets the index of the group of those spans, added where it is new; nothing
  // where it is of one rank.
  template <typename Set>
  void Find(const Group& group, const std::string& purpose, Set set) {
    if (group.spans().empty()) return;
    const std::string name = SpansText(group);
    for (int g = 0; g < plan_.groups_size(); ++g) {
      if (plan_.groups(g).name() == name) return set(g);
    }
    set(Add(name, group, purpose));
  }
  template <typename Set>
  void FindAlike(const Group& group, Set set) {
    Find(group,
         IsAlong(group, kReplicaAxis)
             ? "sum gradients over data replicas"
             : "sum gradients over the ranks that hold the same",
         set);
  }

  // Those over which something is dealt say how large slices are.
  void SetWeights() {
    const auto& of_replicas = plan_.job().parallelism().zero_weights();
    if (of_replicas.empty()) return;
    for (Group& group : *plan_.mutable_groups()) {
      if (!Deals(group) || !Spans(plan_.mesh(), group, kReplicaAxis)) continue;
      for (const int member : MembersOf(plan_.mesh(), group, /*rank=*/0)) {
        group.add_weights(
            of_replicas[CoordinateOn(plan_.mesh(), kReplicaAxis, member)]);
      }
    }
  }

  // Those along "data": of all its places, or of those behind the replicas.
  int FindOnData(bool servers_only) {
    Group group;
    Group::Span& span = *group.add_spans();
    span.set_axis(kReplicaAxis);
    const int places = AxisSize(plan_.mesh(), kReplicaAxis);
    const int replicas = places - plan_.job().parallelism().servers();
    for (int p = replicas; servers_only && p < places; ++p) {
      span.add_places(p);
    }
    int found = -1;
    Find(group,
         servers_only ? "keep parameters and optimizer states"
                      : "push gradients to servers",
         [&](int g) { found = g; });
    return found;
  }

  void AddDealt(const Group& dealt) {
    AddOnce(GatherGroupName(dealt), dealt, "make parameters whole");
    dealt_.insert({SpansText(dealt), GatherGroupName(dealt)});
  }

  // A group of its own, even where another has the same ranks; once.
  void AddOnce(const std::string& name, const Group& spans,
               const std::string& purpose) {
    for (const Group& group : plan_.groups()) {
      if (group.name() == name) return;
    }
    Add(name, spans, purpose);
  }

  int Add(const std::string& name, const Group& spans,
          const std::string& purpose) {
    Group& group = *plan_.add_groups() = spans;
    group.set_name(name);
    group.set_purpose(purpose);
    return plan_.groups_size() - 1;
  }

  int AddAlong(const std::string& name, const std::string& axis,
               const std::string& purpose) {
    Group group;
    group.add_spans()->set_axis(axis);
    return Add(name, group, purpose);
  }

  // Of these places on the pipeline.
  void AddBetween(const Places& places, const std::string& name,
                  const std::string& purpose) {
    if (places.size() < 2) return;
    Group group;
    Group::Span& span = *group.add_spans();
    span.set_axis(kPipelineAxis);
    const size_t all = AxisSize(plan_.mesh(), kPipelineAxis);
    if (places.size() < all) {
      for (const int place : places) span.add_places(place);
    }
    Add(name, group, purpose);
  }

 private:
  bool Deals(const Group& group) const {
    return dealt_.count(group.name()) > 0;
  }

  Plan& plan_;
  std::set<std::string> dealt_;  // by name
};

Group AllRanks(const Plan& plan) {
  Group world;
  for (const Axis& axis : plan.mesh().axes()) {
    if (axis.size() > 1) world.add_spans()->set_axis(axis.name());
  }
  return world;
}

void AddWorld(Plan& plan, GroupLayout& groups) {
  const Group world = AllRanks(plan);
  if (world.spans().empty() || HasWorldGroup(plan)) return;
  groups.Add(kWorldGroup, world, "sum loss and gradient norm");
}

// Those of an island, which sum what they have trained on; and the ranks at one
// place of each, which exchange what they have learned.
void AddIslands(Plan& plan, GroupLayout& groups) {
  if (!HasIslands(plan)) return;
  const Group all = AllRanks(plan);
  Group island;
  for (const Group::Span& span : all.spans()) {
    if (span.axis() != kIslandAxis) *island.add_spans() = span;
  }
  groups.Find(island, "sum loss and gradient norm of an island", [](int) {});
  groups.AddAlong(kIslandsGroup, kIslandAxis,
                  "exchange what islands have learned");
}

// Of its own, as what it moves lies in the host's memory.
void AddCopies(Plan& plan, GroupLayout& groups) {
  if (!KeepsCopies(plan.job(), plan.mesh())) return;
  groups.Add(kCopiesGroup, AllRanks(plan), "go on after the loss of a worker");
}

void AddPlace(const char* axis, int place, Role& role) {
  Role::Place& at = *role.add_at();
  at.set_axis(axis);
  at.set_place(place);
}

void AddRoles(Plan& plan) {
  for (const std::vector<int>& replicas : ReplicaKinds(plan)) {
    for (int p = 0; p < AxisSize(plan.mesh(), kPipelineAxis); ++p) {
      Role& role = *plan.add_roles();
      AddPlace(kPipelineAxis, p, role);
      for (const int replica : replicas) AddPlace(kReplicaAxis, replica, role);
    }
  }
}

void AddExchange(const Op::Exchange& exchange, GroupLayout& groups) {
  Group along;
  for (const std::string& axis : exchange.axes()) {
    along.add_spans()->set_axis(axis);
  }
  groups.AddOnce(ExchangeGroupName(exchange), along,
                 "exchange what units need");
}

// Of each axis that units are cut along, and of those that exchange together.
void AddExchanges(const Plan& plan, GroupLayout& groups) {
  for (const Axis& axis : plan.mesh().axes()) {
    if (!IsFactor(axis.name()) || axis.size() == 1) continue;
    Op::Exchange along;
    along.add_axes(axis.name());
    AddExchange(along, groups);
  }
  for (const UnitTable& table : plan.tables()) {
    for (const Op& op : table.ops()) {
      if (op.exchange().axes_size() > 1) AddExchange(op.exchange(), groups);
    }
  }
}

// Of a unit that servers keep: replicas have nothing to sum and to save with
// others.
Placement OnReplicas(Placement placement) {
  for (Placement::Part& part : *placement.mutable_parts()) {
    part.clear_summed();
    part.clear_shared();
  }
  return placement;
}

void LayServed(Placement& placement, GroupLayout& groups) {
  Placement::Served& served = *placement.mutable_served();
  served.set_group(groups.FindOnData(/*servers_only=*/false));
  served.set_servers(groups.FindOnData(/*servers_only=*/true));
}

Placement OfRole(const Plan& plan, const Role& role,
                 const Placement& placement) {
  if (!placement.has_served()) return placement;
  return IsServer(plan, FirstRankOf(plan.mesh(), role)) ? OnServers(placement)
                                                        : OnReplicas(placement);
}

// With which others ranks have the parts of a unit. Adds the groups over which
// some are dealt to `dealt_groups`.
Placement PlacementOf(const Plan& plan, int u, const Places& holders,
                      const Dealing& dealing, GroupLayout& groups,
                      std::vector<Group>& dealt_groups) {
  const Unit& unit = plan.units(u);
  Placement placement;
  placement.set_unit(u);
  std::vector<Group> dealt;  // by part
  for (int p = 0; p < unit.parts_size(); ++p) {
    const Unit::Part& part = unit.parts(p);
    Placement::Part& with = *placement.add_parts();
    const Dealing of_part = dealing.OfPart(unit, p);
    dealt.push_back(MayBeDealt(plan, part) ? DealtGroup(plan, of_part)
                                           : Group());
    if (!part.frozen()) {
      groups.FindAlike(Alike(plan, holders, of_part, part, /*sums=*/true),
                       [&](int group) { with.set_summed(group); });
    }
    groups.FindAlike(Alike(plan, holders, of_part, part, /*sums=*/false),
                     [&](int group) { with.set_shared(group); });
  }
  for (int p = 0; p < unit.parts_size(); ++p) {
    groups.Find(
        dealt[p], "sum gradients, to each rank its slice",
        [&](int group) { placement.mutable_parts(p)->set_dealt(group); });
    if (!dealt[p].spans().empty()) dealt_groups.push_back(dealt[p]);
  }
  return placement;
}

}  // namespace

void LayGroups(Plan& plan) {
  GroupLayout groups(plan);
  AddRoles(plan);
  const std::vector<Places> holders = Holders(plan);
  const std::vector<Dealing> dealing = DealingOfUnits(plan);
  std::vector<Group> dealt_groups;
  for (int u = 0; u < plan.units_size(); ++u) {
    Placement placement =
        PlacementOf(plan, u, holders[u], dealing[u], groups, dealt_groups);
    if (HasServers(plan)) LayServed(placement, groups);
    for (int r = 0; r < plan.roles_size(); ++r) {
      const int place = r % AxisSize(plan.mesh(), kPipelineAxis);
      if (holders[u].count(place) == 0) continue;
      Role& role = *plan.mutable_roles(r);
      *role.add_placements() = OfRole(plan, role, placement);
    }
  }
  for (const Group& dealt : dealt_groups) {
    groups.AddDealt(dealt);
  }
  groups.SetWeights();
  if (HasServers(plan)) {
    const Group pushes = plan.groups(groups.FindOnData(/*servers_only=*/false));
    groups.AddOnce(GatherGroupName(pushes), pushes,
                   "pull parameters from servers");
  }
  AddWorld(plan, groups);
  AddIslands(plan, groups);
  AddCopies(plan, groups);
  if (AxisSize(plan.mesh(), kPipelineAxis) > 1) {
    groups.AddAlong(TransferGroupName(/*gradient=*/false), kPipelineAxis,
                    "hand activations to the next stage");
    groups.AddBetween(GradientPlaces(plan),
                      TransferGroupName(/*gradient=*/true),
                      "hand gradients of activations to the stage before");
  }
  AddExchanges(plan, groups);
}

}  // namespace troupe
