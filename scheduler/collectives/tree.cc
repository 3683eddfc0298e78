#include "scheduler/collectives/tree.h"

#include <vector>

#include "proto/base/status.h"
#include "scheduler/collectives/prime_levels.h"
#include "scheduler/collectives/steps_over.h"

namespace troupe {
namespace {

// Up on each level but the last, on which all have the sum at once, and down.
std::vector<Group::Step> UpAndDown(int levels) {
  std::vector<Group::Step> steps;
  const auto add = [&](Collective collective, int level) {
    Group::Step& step = steps.emplace_back();
    step.set_collective(collective);
    step.set_level(level);
  };
  for (int l = 0; l + 1 < levels; ++l) add(REDUCE, l);
  add(ALL_REDUCE, levels - 1);
  for (int l = levels - 2; l >= 0; --l) add(BROADCAST, l);
  return steps;
}

}  // namespace

absl::StatusOr<LaidWay> LayTree(const GroupExchange& exchange) {
  if (exchange.collective != ALL_REDUCE && exchange.collective != BROADCAST) {
    return absl::FailedPreconditionError(
        "a tree moves whole buffers, and no blocks of members");
  }
  ASSIGN_OR_RETURN(LaidWay way, PrimeLevels(exchange));
  if (way.levels.empty()) return way;
  const auto levels = static_cast<int>(way.levels.size());
  if (exchange.collective == ALL_REDUCE) {
    way.steps = UpAndDown(levels);
    return way;
  }
  ASSIGN_OR_RETURN(way.steps, StepsOver(exchange.collective, levels));
  return way;
}

}  // namespace troupe
