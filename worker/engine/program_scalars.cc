#include "worker/engine/program_scalars.h"

#include <algorithm>

#include "proto/base/status.h"

namespace troupe {

ProgramScalars::ProgramScalars(const Program& program, const RankMemory& memory,
                               int64_t step) {
  const Buffer* earliest = nullptr;
  // A rank that only takes part in sums has no copy of its own step in the
  // program, but later runs will sum that too.
  int latest = 0;
  for (const Buffer& buffer : program.buffers()) {
    if (buffer.kind() != Buffer::SCALARS) continue;
    latest = std::max(latest, buffer.copy_offset());
    if (earliest == nullptr || buffer.copy_offset() < earliest->copy_offset()) {
      earliest = &buffer;
    }
  }
  if (earliest == nullptr) return;
  known_ = memory.At(*earliest, step).memory();
  Buffer own = *earliest;
  own.set_copy_offset(latest);
  begun_ = memory.At(own, step).memory();
}

void ProgramScalars::Begin(Device& device) const {
  if (begun_ != nullptr) device.Zero(begun_, sizeof(Scalars));
}

absl::StatusOr<Scalars> ProgramScalars::Read(Device& device) const {
  Scalars scalars{};
  if (known_ == nullptr) return scalars;
  device.CopyToHost(scalars.data(), known_, sizeof(scalars));
  RETURN_IF_ERROR(device.Synchronize());
  return scalars;
}

}  // namespace troupe
