#include "worker/engine/program_scalars.h"

#include <algorithm>
#include <set>

#include "proto/base/check.h"

namespace troupe {
namespace {

// Of `offsets`, at which the program has copies: those that it is the first to
// add to.
std::set<int> BegunAt(Program::Kind kind, const std::set<int>& offsets) {
  switch (kind) {
    case Program::TRAIN:
      // The run before began all earlier ones. A rank that only takes part in
      // sums has no copy of its own step in the program, but later runs sum
      // that, too.
      return {std::max(0, *offsets.rbegin())};
    case Program::REPORT:
      return {};
    default:
      return offsets;
  }
}

}  // namespace

ProgramScalars::ProgramScalars(const Program& program, const RankMemory& memory,
                               int64_t step) {
  const Buffer* earliest = nullptr;
  std::set<int> offsets;
  for (const Buffer& buffer : program.buffers()) {
    // What is elsewhere for the while of a step has no steps of its own.
    if (buffer.kind() != Buffer::SCALARS || buffer.copy() > 0) continue;
    offsets.insert(buffer.copy_offset());
    if (buffer.copy_offset() == *offsets.begin()) earliest = &buffer;
  }
  if (earliest == nullptr) return;
  bytes_ = earliest->bytes();
  known_ = memory.At(*earliest, step).memory();
  for (const int offset : BegunAt(program.kind(), offsets)) {
    Buffer begun = *earliest;
    begun.set_copy_offset(offset);
    begun_.push_back(memory.At(begun, step).memory());
  }
}

void ProgramScalars::Begin(Device& device) const {
  for (char* const copy : begun_) device.Zero(copy, bytes_);
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
