// What a buffer's kind, tier and copy imply: how long it lives, how it is
// aligned and under which line item of the plan's memory it is counted
// (docs/plan.md, "Slots and memory").
#ifndef TROUPE_PROTO_PLAN_BUFFER_KIND_H_
#define TROUPE_PROTO_PLAN_BUFFER_KIND_H_

#include <cstdint>
#include <string>

#include "proto/cluster.pb.h"
#include "proto/program.pb.h"

namespace troupe {

// Values of resident kinds live as long as the job, each in a slot of its own;
// the others from their first writer to their last user, but where they are
// carried from one program to a later one.
inline bool IsStateCopy(Buffer::Kind kind) {
  return kind == Buffer::STATE_COPY || kind == Buffer::PEER_COPY;
}
inline bool IsResident(Buffer::Kind kind) {
  return (kind >= Buffer::PARAMETERS && kind <= Buffer::SNAPSHOT_COPY) ||
         IsStateCopy(kind);
}
// Whether the buffer is a copy of a value that rests in another tier. Of
// whichever kind, it comes and goes.
inline bool IsFetched(const Buffer& buffer) { return buffer.copy() > 0; }
inline bool IsResident(const Buffer& buffer) {
  return !IsFetched(buffer) && IsResident(buffer.kind());
}
inline bool OutlivesProgram(const Buffer& buffer) {
  return !IsFetched(buffer) && (buffer.carried() || IsResident(buffer.kind()));
}

inline Tier TierOf(const Buffer& buffer) {
  return buffer.tier() == TIER_UNSPECIFIED ? DEVICE : buffer.tier();
}

// Whether two buffers are the same value, or versions of it.
inline bool SameValue(const Buffer& a, const Buffer& b) {
  return a.kind() == b.kind() && a.has_unit() == b.has_unit() &&
         a.unit() == b.unit() && a.has_micro_batch() == b.has_micro_batch() &&
         a.micro_batch() == b.micro_batch() && a.output() == b.output();
}

// Buffers of a tier begin at multiples of this number of bytes, as slots do:
// whole cache lines on the device. What lies in memory below may go to a disk
// or come from there, past the page cache, in whole blocks.
inline constexpr int64_t AlignmentOf(Tier tier) {
  return tier == HOST || tier == NVME ? 4096 : 64;
}
inline constexpr int64_t TierAligned(int64_t bytes, Tier tier) {
  const int64_t alignment = AlignmentOf(tier);
  return (bytes + alignment - 1) / alignment * alignment;
}

// What a FETCH or EVICT of a value moves: between a disk and memory whole
// blocks, which both places have.
inline int64_t BytesMoved(const Buffer& from, const Buffer& to) {
  const bool disk = TierOf(from) == NVME || TierOf(to) == NVME;
  return disk ? TierAligned(from.bytes(), NVME) : from.bytes();
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

// Of the copies that outlive an attempt to run the job.
inline constexpr char kCopiesItem[] = "state_copies";

inline std::string LineItem(Buffer::Kind kind) {
  switch (kind) {
    case Buffer::PARAMETERS:
      return "parameters";
    case Buffer::PARAMETER_GRADIENTS:
      return "gradients";
    case Buffer::UNSHARDED_PARAMETERS:
    case Buffer::UNSHARDED_GRADIENTS:
      return "unsharded";
    case Buffer::PUSHED_GRADIENTS:
      return "pushed";
    case Buffer::OUTER_GRADIENTS:
      return "exchanged";
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
    case Buffer::STATE_COPY:
    case Buffer::PEER_COPY:
      return kCopiesItem;
    default:
      return "buffers";
  }
}
inline std::string LineItem(const Buffer& buffer) {
  return IsFetched(buffer) ? "fetched" : LineItem(buffer.kind());
}

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_BUFFER_KIND_H_
