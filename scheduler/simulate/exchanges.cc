#include "scheduler/simulate/exchanges.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "proto/plan/find_program.h"
#include "proto/plan/groups.h"
#include "proto/plan/meeting.h"
#include "proto/plan/roles.h"
#include "proto/plan/way_bytes.h"
#include "proto/plan/ways.h"
#include "scheduler/simulate/rates.h"

namespace troupe {
namespace {

ExchangePrediction PredictOne(const Plan& plan, const CostModel& costs,
                              const PlannedExchange& exchange) {
  const Operation& operation = exchange.operation;
  const CollectiveSize& size = operation.size;
  const Group& group = plan.groups(exchange.group);
  ExchangePrediction prediction;
  prediction.set_group(group.name());
  prediction.set_collective(size.collective);
  prediction.set_ranks(size.ranks);
  prediction.set_bytes(size.bytes);
  prediction.set_bytes_sent(CollectiveBytesSent(size));
  const Group::Way flat;
  prediction.set_flat_seconds(
      costs.WaySeconds(exchange.group, flat, exchange.operation));
  const Group::Way* const way =
      operation.uneven ? nullptr : WayOf(group, size.collective, size.bytes);
  if (way == nullptr) {
    prediction.set_row(kFlatRow);
    prediction.set_seconds(prediction.flat_seconds());
    return prediction;
  }
  prediction.set_row(way->row());
  prediction.set_seconds(
      costs.WaySeconds(exchange.group, *way, exchange.operation));
  const int element_bytes = operation.narrow ? 2 : 4;
  const WayBuffer buffer = {.elements = size.bytes / element_bytes,
                            .element_bytes = element_bytes};
  // A buffer of few elements is cut into no more than these.
  if (Overlaps(*way)) {
    prediction.set_pieces(static_cast<int>(PiecesOf(*way, size.ranks, buffer)));
  }
  const std::vector<double> seconds =
      costs.StepSeconds(exchange.group, *way, exchange.operation);
  const std::vector<StepBytes> bytes =
      BytesOfSteps(group, *way, size.ranks, buffer);
  std::map<int, ExchangePrediction::OfLevel> levels;
  for (int s = 0; s < way->steps_size(); ++s) {
    const int index = way->steps(s).level();
    ExchangePrediction::OfLevel& level = levels[index];
    level.set_name(group.levels(index).name());
    level.set_size(group.levels(index).size());
    level.set_bytes(level.bytes() + bytes[s].sent / size.ranks);
    level.set_seconds(level.seconds() + seconds[s]);
  }
  for (auto& [index, level] : levels) {
    *prediction.add_levels() = std::move(level);
  }
  return prediction;
}

}  // namespace

std::vector<PlannedExchange> ExchangesOf(const Plan& plan) {
  using Look = std::tuple<int, int, int64_t, bool, bool, bool>;
  std::map<Look, PlannedExchange> exchanges;
  for (const Role& role : plan.roles()) {
    const int rank = FirstRankOf(plan.mesh(), role);
    for (const Program& program : role.programs()) {
      const bool in_step = program.kind() == StepKind(plan.job());
      for (const Instruction& instruction : program.instructions()) {
        if (!IsCollective(instruction.kind())) continue;
        PlannedExchange exchange = {
            .group = instruction.group(),
            .operation = OperationOf(plan, rank, instruction),
            .scalars = instruction.kind() == Instruction::REDUCE_SCALARS};
        const CollectiveSize& size = exchange.operation.size;
        const Look look(exchange.group, size.collective, size.bytes,
                        !exchange.scalars, exchange.operation.narrow,
                        exchange.operation.uneven);
        exchanges.try_emplace(look, exchange).first->second.in_step |= in_step;
      }
    }
  }
  std::vector<PlannedExchange> all;
  for (auto& [look, exchange] : exchanges) all.push_back(exchange);
  return all;
}

std::vector<ExchangePrediction> PredictExchanges(const Plan& plan,
                                                 const CostModel& costs) {
  bool spans = false;
  for (int g = 0; g < plan.groups_size(); ++g) {
    spans |= costs.SpansHosts(g);
  }
  if (!spans) return {};
  std::vector<PlannedExchange> exchanges;
  for (const PlannedExchange& exchange : ExchangesOf(plan)) {
    if (!exchange.in_step || exchange.scalars) continue;
    if (exchange.operation.size.bytes == 0) continue;
    if (costs.SpansHosts(exchange.group)) exchanges.push_back(exchange);
  }
  std::stable_sort(exchanges.begin(), exchanges.end(),
                   [](const PlannedExchange& a, const PlannedExchange& b) {
                     return a.operation.size.bytes > b.operation.size.bytes;
                   });
  constexpr auto kMost = static_cast<size_t>(kExchangesMax);
  if (exchanges.size() > kMost) exchanges.resize(kMost);
  std::vector<ExchangePrediction> predictions;
  for (const PlannedExchange& exchange : exchanges) {
    predictions.push_back(PredictOne(plan, costs, exchange));
  }
  return predictions;
}

}  // namespace troupe
