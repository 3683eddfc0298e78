#include "worker/instructions/outer_step.h"

#include <vector>

#include "proto/plan/last_step.h"
#include "worker/instructions/outer_call.h"

namespace troupe {

namespace {

// After the last step islands keep nothing of their own.
double MixingOf(const Call& call) {
  const JobSpec& job = call.state.plan->job();
  const bool ends = call.instruction.when().last() &&
                    StepOf(call) == LastStep(job.training());
  return ends ? 0 : job.islands().mixing();
}

}  // namespace

absl::Status RunOuterStep(const Call& call) {
  const ChangeLayout layout = ChangeOf(call);
  if (layout.elements == 0) return absl::OkStatus();
  RankState& state = call.state;
  Device& device = DeviceOf(call);
  const OuterSpec& outer = state.plan->job().optimizer().outer();
  const std::vector<OuterPiece> pieces = OuterPiecesOf(call);
  char* const change = NeedOperand(call, Instruction::CHANGE);
  if (!layout.compressed) {
    StepOuter(device, pieces, outer,
              state.TypeOfParameters(call.instruction.unit()),
              {.window = {0, layout.elements},
               .change = reinterpret_cast<float*>(change),
               .scale = 1.0 / layout.islands,
               .mixing = MixingOf(call)});
    return absl::OkStatus();
  }
  auto* const floats =
      reinterpret_cast<float*>(NeedOperand(call, Instruction::SCRATCH));
  ForChangeWindows(call, layout, [&](const ChangeWindow& at) {
    Expand(call, change + at.offset, at.window.size(), floats);
    StepOuter(device, pieces, outer,
              state.TypeOfParameters(call.instruction.unit()),
              {.window = at.window,
               .change = floats,
               .scale = 1,
               .mixing = MixingOf(call)});
  });
  return absl::OkStatus();
}

}  // namespace troupe
