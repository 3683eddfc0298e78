#include "scheduler/search/group_costs.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/plan/groups.h"
#include "scheduler/collectives/collectives.h"
#include "scheduler/planner/choose_backends.h"
#include "scheduler/simulate/adapters.h"
#include "scheduler/simulate/links.h"
#include "scheduler/simulate/traffic.h"

namespace troupe {
namespace {

constexpr char kAxis[] = "data";

// Of the ranks from 0 to `end`, those on the first one's host, and what its
// adapters carry for each: seconds for each byte that all of them send.
double CrowdedSecondsPerByte(const std::vector<WorkerDescription>& workers,
                             size_t end) {
  std::vector<WorkerDescription> host;
  for (size_t r = 0; r < end; ++r) {
    if (workers[r].host() == workers[0].host()) host.push_back(workers[r]);
  }
  if (host.size() < 2) return 0;
  const Adapters adapters =
      AdaptersOf(host, std::vector<int>(host.size(), 0), /*gain=*/1);
  if (adapters.of_rank.empty()) return 0;
  std::vector<double> seconds(adapters.rates.size(), 0);
  for (const std::vector<int>& used : adapters.of_rank) {
    for (const int adapter : used) {
      seconds[adapter] +=
          1 / (adapters.rates[adapter] * static_cast<double>(used.size()));
    }
  }
  return *std::max_element(seconds.begin(), seconds.end());
}

}  // namespace

GroupCosts::Priced& GroupCosts::PricedOf(const Group& group) {
  const auto [found, is_new] = priced_.try_emplace(group);
  Priced& priced = found->second;
  if (!is_new) return priced;
  priced.plan.mutable_job()->mutable_training()->set_sequence_length(1);
  Axis& axis = *priced.plan.mutable_mesh()->add_axes();
  axis.set_name(kAxis);
  axis.set_size(group.count);
  troupe::Group& all = *priced.plan.add_groups();
  all.set_name(kAxis);
  all.add_spans()->set_axis(kAxis);
  std::vector<WorkerDescription> members;
  for (int i = 0; i < group.count; ++i) {
    members.push_back(workers_.at(size_t{1} * i * group.stride));
  }
  ChooseBackends(members, priced.plan.mesh(), *priced.plan.mutable_groups());
  priced.costs = std::make_unique<CostModel>(priced.plan, members);
  AddRows(members, priced);
  priced.seconds_per_byte = CrowdedSecondsPerByte(
      workers_,
      std::min(workers_.size(), size_t{1} * group.count * group.stride));
  return priced;
}

// As the planner chooses (scheduler/planner/choose_ways.h), but for what it
// knows of all groups of a name.
void GroupCosts::AddRows(const std::vector<WorkerDescription>& members,
                         Priced& priced) {
  const std::vector<int> hosts = priced.costs->HostsOf(0, 0);
  const bool over_nccl =
      CarrierOf(priced.plan.groups(0), 0).backend() == "nccl";
  if (over_nccl) return;
  for (const CollectiveRow& row : CollectiveRows()) {
    std::map<Collective, LaidWay> laid;
    size_t choices = 0;  // of pieces
    for (const Collective collective :
         {ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER}) {
      auto way = LayRow(row, {.hosts = hosts, .collective = collective});
      if (!way.ok() || way->steps.empty()) continue;
      choices = std::max(choices, way->pieces.size());
      laid.emplace(collective, *std::move(way));
    }
    if (laid.empty()) continue;
    auto over = std::make_unique<Priced::OverLevels>();
    over->plan = priced.plan;
    over->plan.clear_groups();
    for (size_t choice = 0; choice < choices; ++choice) {
      troupe::Group& group = *over->plan.add_groups();
      group = priced.plan.groups(0);
      group.set_name(absl::StrCat(kAxis, " ", choice));
      group.clear_carriers();
      for (const auto& [collective, of_row] : laid) {
        *group.mutable_levels() = {of_row.levels.begin(), of_row.levels.end()};
        troupe::Group::Way& way = *group.add_ways();
        way.set_collective(collective);
        way.set_pieces(
            of_row.pieces[std::min(choice, of_row.pieces.size() - 1)]);
        *way.mutable_steps() = {of_row.steps.begin(), of_row.steps.end()};
      }
    }
    ChooseBackends(members, over->plan.mesh(), *over->plan.mutable_groups());
    over->costs = std::make_unique<CostModel>(over->plan, members);
    priced.rows.push_back(std::move(over));
  }
}

double GroupCosts::SecondsOf(const Group& group, const Move& move) {
  if (group.count < 2 || move.bytes == 0) return 0;
  Priced& priced = PricedOf(group);
  const auto [known, is_new] = priced.known.try_emplace(move);
  if (is_new) known->second = LeastSeconds(priced, group.count, move);
  return known->second;
}

double GroupCosts::LeastSeconds(const Priced& priced, int ranks,
                                const Move& move) {
  const auto seconds = [&](const CostModel& costs, int group) {
    const Cost cost = costs.GroupCost(0, group,
                                      {.size = {.bytes = move.bytes,
                                                .ranks = ranks,
                                                .collective = move.collective},
                                       .narrow = move.narrow});
    const double crowded = cost.bytes[NETWORK_OUT] * priced.seconds_per_byte;
    return cost.communication + std::max(0.0, crowded - cost.on_wire);
  };
  double least = seconds(*priced.costs, 0);
  // Narrow sums are flat.
  if (move.narrow && move.collective != ALL_GATHER) return least;
  for (const auto& row : priced.rows) {
    for (int g = 0; g < row->plan.groups_size(); ++g) {
      least = std::min(least, seconds(*row->costs, g));
    }
  }
  return least;
}

}  // namespace troupe
