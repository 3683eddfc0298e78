#include "worker/engine/program_scalars.h"

#include <algorithm>

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

void ProgramScalars::Read(Device& device, double* host) const {
  if (known_ == nullptr) {
    std::fill_n(host, kScalarCount, 0.0);
  } else {
    device.CopyToHost(host, known_, sizeof(Scalars));
  }
}

}  // namespace troupe
