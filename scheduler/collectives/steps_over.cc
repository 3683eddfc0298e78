#include "scheduler/collectives/steps_over.h"

#include "proto/base/check.h"

namespace troupe {
namespace {

void AddStep(Collective collective, int level,
             std::vector<Group::Step>& steps) {
  Group::Step& step = steps.emplace_back();
  step.set_collective(collective);
  step.set_level(level);
}

}  // namespace

absl::StatusOr<std::vector<Group::Step>> StepsOver(Collective collective,
                                                   int levels) {
  CHECK_GE(levels, 1);
  const int last = levels - 1;
  std::vector<Group::Step> steps;
  switch (collective) {
    case ALL_REDUCE:
      for (int l = 0; l < last; ++l) AddStep(REDUCE_SCATTER, l, steps);
      AddStep(ALL_REDUCE, last, steps);
      for (int l = last - 1; l >= 0; --l) AddStep(ALL_GATHER, l, steps);
      return steps;
    case REDUCE_SCATTER:
    case ALL_TO_ALL:
      for (int l = 0; l <= last; ++l) AddStep(collective, l, steps);
      return steps;
    case ALL_GATHER:
    case BROADCAST:
      for (int l = last; l >= 0; --l) AddStep(collective, l, steps);
      return steps;
    default:
      return absl::FailedPreconditionError(
          "such exchanges go straight from member to member");
  }
}

}  // namespace troupe
