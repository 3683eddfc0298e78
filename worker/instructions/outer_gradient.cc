#include "worker/instructions/outer_gradient.h"

#include <vector>

#include "worker/instructions/outer_call.h"

namespace troupe {

absl::Status RunOuterGradient(const Call& call) {
  const ChangeLayout layout = ChangeOf(call);
  if (layout.elements == 0) return absl::OkStatus();
  Device& device = DeviceOf(call);
  const std::vector<OuterPiece> pieces = OuterPiecesOf(call);
  char* const change = NeedOperand(call, Instruction::CHANGE);
  if (!layout.compressed) {
    TakeChange(device, pieces, {0, layout.elements},
               reinterpret_cast<float*>(change));
    return absl::OkStatus();
  }
  auto* const floats =
      reinterpret_cast<float*>(NeedOperand(call, Instruction::SCRATCH));
  ForChangeWindows(call, layout, [&](const ChangeWindow& at) {
    TakeChange(device, pieces, at.window, floats);
    Compress(call, floats, at.window.size(), change + at.offset);
  });
  return absl::OkStatus();
}

}  // namespace troupe
