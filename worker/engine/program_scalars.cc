#include "worker/engine/program_scalars.h"

#include <algorithm>

#include "proto/base/check.h"

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
  bytes_ = earliest->bytes();
  known_ = memory.At(*earliest, step).memory();
  Buffer own = *earliest;
  own.set_copy_offset(latest);
  begun_ = memory.At(own, step).memory();
}

void ProgramScalars::Begin(Device& device) const {
  if (begun_ != nullptr) device.Zero(begun_, bytes_);
}

void ProgramScalars::Read(Device& device, absl::Span<double> host) const {
  if (known_ == nullptr) {
    std::fill(host.begin(), host.end(), 0.0);
    return;
  }
  const size_t bytes = host.size() * sizeof(double);
  CHECK_EQ(bytes, bytes_);
  device.CopyToHost(host.data(), known_, bytes);
}

}  // namespace troupe
