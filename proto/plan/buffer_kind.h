// What a kind of buffer implies: how long it lives and under which line item of
// the plan's memory it is counted (docs/plan.md, "Slots and memory").
#ifndef TROUPE_PROTO_PLAN_BUFFER_KIND_H_
#define TROUPE_PROTO_PLAN_BUFFER_KIND_H_

#include <cstdint>
#include <string>

#include "proto/cluster.pb.h"
#include "proto/program.pb.h"

namespace troupe {

// Resident buffers live as long as the job, each in a slot of its own; the
// others from their first writer to their last user, but where they are carried
// from one program to a later one.
inline bool IsResident(Buffer::Kind kind) {
  return kind >= Buffer::PARAMETERS && kind <= Buffer::SNAPSHOT_COPY;
}
inline bool OutlivesProgram(const Buffer& buffer) {
  return buffer.carried() || IsResident(buffer.kind());
}

// Whether two buffers are the same value, or versions of it.
inline bool SameValue(const Buffer& a, const Buffer& b) {
  return a.kind() == b.kind() && a.has_unit() == b.has_unit() &&
         a.unit() == b.unit() && a.has_micro_batch() == b.has_micro_batch() &&
         a.micro_batch() == b.micro_batch();
}

// Buffers begin at multiples of so many bytes, which slots are as long as:
// whole cache lines.
inline constexpr int64_t kSlotAlignment = 64;
inline int64_t SlotAligned(int64_t bytes) {
  return (bytes + kSlotAlignment - 1) / kSlotAlignment * kSlotAlignment;
}

// Copies of a slot, and which of them a buffer is in a program that runs for a
// step: number 0 to copies - 1.
inline int CopiesOf(const Slot& slot) {
  return slot.copies() > 1 ? slot.copies() : 1;
}
inline int CopyAt(const Buffer& buffer, const Slot& slot, int64_t step) {
  const int64_t copies = CopiesOf(slot);
  return static_cast<int>(((step + buffer.copy_offset()) % copies + copies) %
                          copies);
}

inline std::string LineItem(Buffer::Kind kind) {
  switch (kind) {
    case Buffer::PARAMETERS:
      return "parameters";
    case Buffer::PARAMETER_GRADIENTS:
      return "gradients";
    case Buffer::UNSHARDED_PARAMETERS:
    case Buffer::UNSHARDED_GRADIENTS:
      return "unsharded";
    case Buffer::MASTER_WEIGHTS:
      return "master_weights";
    case Buffer::OPTIMIZER_STATE:
      return "optimizer_moments";
    case Buffer::ACTIVATION:
    case Buffer::STASH:
    case Buffer::GRADIENT:
    case Buffer::WEIGHT_STASH:
    case Buffer::SEGMENT_VALUES:
    case Buffer::SEGMENT_GRADIENTS:
    case Buffer::RECOMPUTED:
      return "activations";
    case Buffer::SNAPSHOT_COPY:
      return "snapshot";
    default:
      return "buffers";
  }
}

// Where buffers of a kind rest.
inline Tier HomeTier(Buffer::Kind kind) {
  return kind == Buffer::SNAPSHOT_COPY ? HOST : DEVICE;
}

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_BUFFER_KIND_H_
