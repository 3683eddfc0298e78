#include "scheduler/planner/choose_ways.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "proto/base/check.h"
#include "proto/base/status.h"
#include "proto/plan/fields.h"
#include "proto/plan/groups.h"
#include "proto/plan/islands.h"
#include "proto/plan/mesh.h"
#include "proto/plan/ways.h"
#include "scheduler/collectives/collectives.h"
#include "scheduler/planner/choose_backends.h"
#include "scheduler/planner/group_hosts.h"
#include "scheduler/planner/named_rows.h"
#include "scheduler/planner/write_ways.h"
#include "scheduler/simulate/cost_model.h"
#include "scheduler/simulate/exchanges.h"
#include "scheduler/simulate/links.h"
#include "scheduler/simulate/rates.h"

namespace troupe {
namespace {

bool AddsUp(Collective collective) {
  const Collective of = WayCollective(collective);
  return of == ALL_REDUCE || of == REDUCE_SCATTER;
}

// "all-reduce of 26214400 bytes"
std::string ExchangeText(const CollectiveSize& size) {
  return absl::StrCat(CollectiveText(size.collective), " of ", size.bytes,
                      " bytes");
}

// A row's steps for an exchange, over levels of the group.
struct Candidate {
  absl::string_view row;
  std::vector<Group::Step> steps;
  int pieces = 1;
};

class WayChooser {
 public:
  // Borrows all.
  WayChooser(const std::vector<WorkerDescription>& workers, Plan& plan,
             const Plan* before)
      : workers_(workers), plan_(plan), before_(before) {}

  absl::Status Run() {
    const GroupHosts hosts(workers_, plan_.mesh());
    if (hosts.hosts() <= 1) return absl::OkStatus();
    Collect();
    bool any = false;
    for (auto& [group, exchanges] : of_groups_) {
      RETURN_IF_ERROR(LayAll(hosts.Of(plan_.mesh(), plan_.groups(group)), group,
                             exchanges));
      any |= !plan_.groups(group).levels().empty();
    }
    if (!any) return absl::OkStatus();
    Carry();
    {
      const CostModel costs(plan_, workers_);
      for (auto& [group, exchanges] : of_groups_) {
        if (plan_.groups(group).levels().empty()) continue;
        for (Chosen& chosen : exchanges) Choose(costs, chosen);
      }
    }
    for (auto& [group, exchanges] : of_groups_) {
      WriteWays(ChosenOf(exchanges), *plan_.mutable_groups(group));
    }
    Carry();
    return absl::OkStatus();
  }

 private:
  struct Chosen {
    PlannedExchange exchange;
    std::vector<Candidate> candidates;  // beside flat
    std::string why_not;                // the first row that is none
    const Candidate* taken = nullptr;   // null: flat
    bool named = false;                 // by the job
  };

  static Collective CollectiveOf(const Chosen& chosen) {
    return WayCollective(chosen.exchange.operation.size.collective);
  }

  // By the collective whose ways they take, and size: a reduce and an
  // all-reduce of the same numbers are one choice, the all-reduce's.
  void Collect() {
    const auto look = [](const PlannedExchange& exchange) {
      const CollectiveSize& size = exchange.operation.size;
      return std::make_tuple(WayCollective(size.collective), size.bytes,
                             !exchange.scalars, exchange.operation.narrow,
                             exchange.operation.uneven);
    };
    using Look = std::tuple<Collective, int64_t, bool, bool, bool>;
    std::map<int, std::map<Look, PlannedExchange>> of_groups;
    for (const PlannedExchange& exchange : ExchangesOf(plan_)) {
      const CollectiveSize& size = exchange.operation.size;
      if (!HasRows(size.collective) || size.bytes <= 0) continue;
      // Their sums have one order, whichever ranks meet (choose_backends.cc).
      if (plan_.groups(exchange.group).name() == kIslandsGroup) continue;
      const auto [known, is_new] =
          of_groups[exchange.group].try_emplace(look(exchange), exchange);
      if (!is_new && WayCollective(size.collective) == size.collective) {
        known->second = exchange;
      }
    }
    for (const auto& [group, exchanges] : of_groups) {
      for (const auto& [key, exchange] : exchanges) {
        of_groups_[group].push_back({.exchange = exchange});
      }
    }
  }

  // The job's word for it; empty: none.
  std::string NamedFor(const PlannedExchange& exchange) const {
    return exchange.scalars ? ""
                            : RowNamedFor(plan_.job().communication(),
                                          exchange.operation.size.collective);
  }

  // Why all groups of a name are flat, whatever a row says of the first; empty:
  // they need not be.
  std::string WhyAllFlat(const std::vector<std::vector<int>>& hosts,
                         const Group& group) const {
    for (const Group::Carrier& carrier : group.carriers()) {
      if (carrier.backend() == "nccl") {
        return "NCCL chooses how it crosses hosts";
      }
    }
    const std::vector<int> first = HostsInOrder(hosts.front());
    for (size_t n = 1; n < hosts.size(); ++n) {
      if (HostsInOrder(hosts[n]) == first) continue;
      return absl::StrCat(group.name(), "-0 and ", group.name(), "-", n,
                          " lie on hosts in different ways");
    }
    return "";
  }

  absl::Status LayAll(const std::vector<std::vector<int>>& hosts, int index,
                      std::vector<Chosen>& exchanges) {
    Group& group = *plan_.mutable_groups(index);
    if (std::none_of(hosts.begin(), hosts.end(), SpanHosts)) {
      return absl::OkStatus();
    }
    const std::string all_flat = WhyAllFlat(hosts, group);
    for (Chosen& chosen : exchanges) {
      if (chosen.exchange.scalars) continue;
      const std::string named = NamedFor(chosen.exchange);
      chosen.named = !named.empty();
      if (named == kFlatRow) {
        SayFlat("the job says so", chosen, group);
        continue;
      }
      if (chosen.exchange.operation.narrow && named.empty() &&
          AddsUp(chosen.exchange.operation.size.collective)) {
        SayFlat("numbers of two bytes are then rounded once", chosen, group);
        continue;
      }
      if (chosen.exchange.operation.uneven) {
        const std::string why = "its blocks are of unlike sizes";
        if (chosen.named) return Refused(chosen, group, why);
        SayFlat(why, chosen, group);
        continue;
      }
      for (const CollectiveRow& row : CollectiveRows()) {
        if (row.name == kFlatRow) continue;
        if (!named.empty() && row.name != named) continue;
        const absl::Status laid = all_flat.empty()
                                      ? Lay(row, hosts.front(), group, chosen)
                                      : absl::FailedPreconditionError(all_flat);
        if (laid.ok()) continue;
        const std::string why = absl::StrCat(row.name, ": ", laid.message());
        if (chosen.named) return Refused(chosen, group, why);
        if (chosen.why_not.empty()) chosen.why_not = why;
      }
      if (chosen.candidates.empty()) SayFlat(chosen.why_not, chosen, group);
    }
    return absl::OkStatus();
  }

  absl::Status Lay(const CollectiveRow& row, const std::vector<int>& hosts,
                   Group& group, Chosen& chosen) {
    const WorkerDescription& worker = workers_.front();
    const Calibration rates = CompletedCalibration(worker.calibration());
    ASSIGN_OR_RETURN(const LaidWay way,
                     LayRow(row, {.hosts = hosts,
                                  .collective = CollectiveOf(chosen),
                                  .bytes = chosen.exchange.operation.size.bytes,
                                  .within_hosts = worker.memory_domain().empty()
                                                      ? rates.loopback()
                                                      : rates.shared_memory(),
                                  .between_hosts = NetworkOf(worker)}));
    if (way.steps.empty()) {
      if (chosen.why_not.empty()) {
        chosen.why_not = absl::StrCat(row.name, ": ", way.why_flat);
      }
      return absl::OkStatus();
    }
    Candidate candidate = {.row = row.name, .steps = way.steps};
    for (Group::Step& step : candidate.steps) {
      step.set_level(IndexOf(way.levels[step.level()], group));
    }
    for (const int pieces : way.pieces) {
      candidate.pieces = pieces;
      chosen.candidates.push_back(candidate);
    }
    return absl::OkStatus();
  }

  // Of the level among the group's, added where it is new.
  static int IndexOf(const Group::Level& level, Group& group) {
    for (int l = 0; l < group.levels_size(); ++l) {
      if (group.levels(l).SerializeAsString() == level.SerializeAsString()) {
        return l;
      }
    }
    *group.add_levels() = level;
    return group.levels_size() - 1;
  }

  // The first reason stays.
  static void SayFlat(absl::string_view why, const Chosen& chosen,
                      Group& group) {
    if (!group.why_flat().empty()) return;
    group.set_why_flat(absl::StrCat(
        ExchangeText(chosen.exchange.operation.size), " is flat: ", why));
  }

  static absl::Status Refused(const Chosen& chosen, const Group& group,
                              absl::string_view why) {
    const CollectiveSize& size = chosen.exchange.operation.size;
    return FieldError(RowFieldOf(size.collective),
                      absl::StrCat("group ", group.name(), " of ", size.ranks,
                                   " ranks cannot do so: ", why,
                                   "; leave it out, and the planner chooses"));
  }

  static Group::Way WayWith(const Candidate* candidate, Collective collective) {
    Group::Way way;
    way.set_collective(collective);
    way.set_row(candidate == nullptr ? kFlatRow : std::string(candidate->row));
    if (candidate != nullptr) {
      way.mutable_steps()->Add(candidate->steps.begin(),
                               candidate->steps.end());
      if (candidate->pieces > 1) way.set_pieces(candidate->pieces);
    }
    return way;
  }

  // Blocks of unlike sizes are flat whatever the group's ways are.
  static std::vector<ChosenWay> ChosenOf(const std::vector<Chosen>& exchanges) {
    std::vector<ChosenWay> ways;
    for (const Chosen& chosen : exchanges) {
      const Operation& operation = chosen.exchange.operation;
      if (operation.uneven) continue;
      ways.push_back({.bytes = operation.size.bytes,
                      .way = WayWith(chosen.taken, CollectiveOf(chosen))});
    }
    return ways;
  }

  // The group in the plan before; null: that says nothing of it.
  const Group* GroupBefore(const Group& group) const {
    if (before_ == nullptr || before_->mesh().SerializeAsString() !=
                                  plan_.mesh().SerializeAsString()) {
      return nullptr;
    }
    for (const Group& other : before_->groups()) {
      if (other.name() != group.name()) continue;
      const bool alike = std::any_of(
          other.carriers().begin(), other.carriers().end(),
          [](const Group::Carrier& c) { return c.backend() == "gloo"; });
      return alike && GroupSize(before_->mesh(), other) ==
                          GroupSize(plan_.mesh(), group)
                 ? &other
                 : nullptr;
    }
    return nullptr;
  }

  // Takes what the plan before has, the pieces too, which may decide the bits.
  // False: it has none, or that is not among the candidates.
  bool Keep(Group& group, Chosen& chosen) const {
    const Group* const before = GroupBefore(group);
    if (before == nullptr) return false;
    const Group::Way* const way = WayOf(*before, CollectiveOf(chosen),
                                        chosen.exchange.operation.size.bytes);
    if (way == nullptr) {
      if (chosen.named) return false;
      SayFlat("it was so before, and sums keep their bits", chosen, group);
      return true;
    }
    for (const Candidate& candidate : chosen.candidates) {
      if (candidate.pieces != std::max(1, way->pieces())) continue;
      if (!AreAlike(*before, way->steps(), group, candidate.steps)) continue;
      chosen.taken = &candidate;
      return true;
    }
    return false;
  }

  // Steps over levels of their groups.
  template <typename These, typename Those>
  static bool AreAlike(const Group& a, const These& these, const Group& b,
                       const Those& those) {
    return std::equal(these.begin(), these.end(), those.begin(), those.end(),
                      [&](const Group::Step& x, const Group::Step& y) {
                        return x.collective() == y.collective() &&
                               a.levels(x.level()).SerializeAsString() ==
                                   b.levels(y.level()).SerializeAsString();
                      });
  }

  void Choose(const CostModel& costs, Chosen& chosen) {
    const PlannedExchange& exchange = chosen.exchange;
    Group& group = *plan_.mutable_groups(exchange.group);
    const auto seconds = [&](const Candidate* candidate) {
      return costs.WaySeconds(exchange.group,
                              WayWith(candidate, CollectiveOf(chosen)),
                              exchange.operation);
    };
    if (chosen.candidates.empty()) return;
    if (Keep(group, chosen)) return;
    // The name of a row leaves the pieces to choose.
    if (chosen.named) chosen.taken = &chosen.candidates.front();
    const double flat = seconds(nullptr);
    double least = chosen.named ? seconds(chosen.taken) : flat;
    const Candidate* best = &chosen.candidates.front();
    double of_best = seconds(best);
    // Where a rate is 0, nothing is faster than flat.
    if (std::isfinite(flat)) {
      for (const Candidate& candidate : chosen.candidates) {
        const double time = seconds(&candidate);
        if (time < of_best) {
          best = &candidate;
          of_best = time;
        }
        if (!(time < least)) continue;
        least = time;
        chosen.taken = &candidate;
      }
    }
    if (chosen.taken != nullptr) return;
    SayFlat(absl::StrFormat("that takes %.3g ms, %s %.3g ms%s%s", 1e3 * flat,
                            best->row, 1e3 * of_best,
                            chosen.why_not.empty() ? "" : "; ", chosen.why_not),
            chosen, group);
  }

  void Carry() {
    for (Group& group : *plan_.mutable_groups()) group.clear_carriers();
    ChooseBackends(workers_, plan_.mesh(), *plan_.mutable_groups());
  }

  const std::vector<WorkerDescription>& workers_;
  Plan& plan_;
  const Plan* const before_;
  std::map<int, std::vector<Chosen>> of_groups_;
};

}  // namespace

absl::Status ChooseWays(const std::vector<WorkerDescription>& workers,
                        Plan& plan, const Plan* before) {
  for (Group& group : *plan.mutable_groups()) {
    group.clear_levels();
    group.clear_ways();
    group.clear_why_flat();
  }
  RETURN_IF_ERROR(WayChooser(workers, plan, before).Run());
  for (const Group& group : plan.groups()) {
    const absl::Status proven = CheckWays(group, GroupSize(plan.mesh(), group));
    CHECK(proven.ok()) << proven.ToString();
  }
  return absl::OkStatus();
}

}  // namespace troupe
