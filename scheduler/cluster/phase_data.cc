#include "scheduler/cluster/phase_data.h"

#include <iterator>

#include "proto/base/check.h"

namespace troupe {

JobPhase KindOf(const RunPhase& phase) {
  constexpr JobPhase kKinds[] = {
      PHASE_STORING, PHASE_STARTING,     PHASE_TRAINING,      PHASE_STOPPING,
      PHASE_LET_GO,  PHASE_AWAIT_PLACES, PHASE_SAVING_COPIES, PHASE_ADOPTING};
  static_assert(std::size(kKinds) == std::variant_size_v<RunPhase>);
  return kKinds[phase.index()];
}

JobPhase KindOf(const PhaseOfJob& phase) {
  constexpr JobPhase kKinds[] = {JOB_PHASE_UNSPECIFIED, PHASE_QUEUED,
                                 PHASE_PLANNED, PHASE_ENDED};
  static_assert(std::size(kKinds) == std::variant_size_v<PhaseOfJob>);
  CHECK(!std::holds_alternative<phase::InRun>(phase)) << "the run has it";
  return kKinds[phase.index()];
}

const std::string& BeginsOf(const RunPhase& phase) {
  static const std::string& nothing = *new std::string();
  if (auto* storing = std::get_if<phase::Storing>(&phase)) {
    return storing->begins;
  }
  if (auto* starting = std::get_if<phase::Starting>(&phase)) {
    return starting->begins;
  }
  if (auto* adopting = std::get_if<phase::Adopting>(&phase)) {
    return adopting->begins;
  }
  return nothing;
}

std::vector<std::string>* WarningsOf(RunPhase& phase) {
  if (auto* starting = std::get_if<phase::Starting>(&phase)) {
    return &starting->warnings;
  }
  if (auto* adopting = std::get_if<phase::Adopting>(&phase)) {
    return &adopting->warnings;
  }
  return nullptr;
}

StoreQuestion* AskedOf(RunPhase& phase) {
  if (auto* storing = std::get_if<phase::Storing>(&phase)) {
    return &storing->asked;
  }
  if (auto* saving = std::get_if<phase::SavingCopies>(&phase)) {
    return &saving->asked;
  }
  return nullptr;
}

}  // namespace troupe
