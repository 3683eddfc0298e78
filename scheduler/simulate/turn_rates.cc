#include "scheduler/simulate/turn_rates.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_format.h"
#include "proto/plan/served.h"

namespace troupe {
namespace {

double SecondsOf(const RankTimes& times) {
  int64_t begin = std::numeric_limits<int64_t>::max();
  int64_t end = 0;
  for (const InstructionTimes& at : times.instructions) {
    begin = std::min(begin, at.start);
    end = std::max(end, at.end);
  }
  return times.instructions.empty() ? 0
                                    : static_cast<double>(end - begin) * 1e-9;
}

}  // namespace

TurnRates RatesOfTurns(const Plan& plan, const SteadyStep& step) {
  double of_server = 0;
  double slowest = 0;
  double rates = 0;
  std::vector<double> seconds;
  for (size_t r = 0; r < step.like.size(); ++r) {
    seconds.push_back(SecondsOf(step.ranks[step.like[r]]));
    if (IsServer(plan, static_cast<int>(r))) {
      of_server = std::max(of_server, seconds.back());
    } else {
      slowest = std::max(slowest, seconds.back());
      if (seconds.back() > 0) rates += 1 / seconds.back();
    }
  }
  const int replicas = plan.job().parallelism().data();
  const bool bounded = plan.job().servers().has_staleness();
  const double alone = rates > 0 ? 1 / rates : 0;
  const double of_replicas = bounded ? slowest / replicas : alone;
  TurnRates result = {.step_seconds = std::max(of_replicas, of_server)};
  for (size_t r = 0; r < seconds.size(); ++r) {
    const bool serves = IsServer(plan, static_cast<int>(r));
    const bool even = serves || bounded || !(seconds[r] > 0);
    result.shares.push_back(serves ? 1
                            : even ? 1.0 / replicas
                                   : alone / seconds[r]);
  }
  if (of_server >= of_replicas) {
    result.limited_by = absl::StrFormat(
        "servers: each of their updates takes %.3g ms, and replicas could "
        "deliver one each %.3g ms; use more servers",
        1e3 * of_server, 1e3 * of_replicas);
  } else if (bounded) {
    result.limited_by = absl::StrFormat(
        "the slowest replica, whose step takes %.3g ms: no other gets more "
        "than servers.staleness steps ahead of it",
        1e3 * slowest);
  } else {
    result.limited_by = absl::StrFormat(
        "replicas, of which the slowest takes %.3g ms for its step; none waits "
        "for another",
        1e3 * slowest);
  }
  return result;
}

}  // namespace troupe
