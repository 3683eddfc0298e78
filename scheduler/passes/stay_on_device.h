// What of a program stays on the device between runs of uses, though it rests
// below it (memory.chunk_megabytes): so that it is not fetched again.
//
// A chunk is a value; where the job gives megabytes, the values of neighbouring
// units, of one kind and micro-batch, up to that size, or one larger value. A
// value is never cut: its unit computes with all of it in one piece, and the
// place of half of one would have room for no other.
#ifndef TROUPE_SCHEDULER_PASSES_STAY_ON_DEVICE_H_
#define TROUPE_SCHEDULER_PASSES_STAY_ON_DEVICE_H_

#include <cstdint>
#include <vector>

#include "proto/job.pb.h"
#include "scheduler/passes/tier_uses.h"
#include "scheduler/tiers/chunks.h"

namespace troupe {

// Says of each use whether its chunk stays (chunks.h).
using StayRule = std::vector<bool> (*)(const std::vector<ChunkUse>& uses,
                                       int64_t capacity);

// Bytes of the device for what is there, by the line item that it is counted
// under: copies of what rests elsewhere, and what lives in one program only,
// which does not rest at all where it stays throughout.
struct DeviceRoom {
  int64_t fetched = 0;
  int64_t activations = 0;
};

// The runs on the device of values that rest below it.
class RunsOnDevice {
 public:
  // REQUIRES memory.chunk_megabytes, resolved. Keeps nothing of these.
  RunsOnDevice(const Program& program, const TierUses& uses,
               const MemorySpec& memory);

  // With which all stays.
  DeviceRoom All() const;

  // Runs whose values stay until their next one.
  StayingRuns Staying(const DeviceRoom& room, StayRule rule) const;

 private:
  struct Run {
    int buffer = 0;
    int last = 0;  // instruction of its last use
  };
  // Of one line item, in the order in which they begin.
  struct Runs {
    std::vector<Run> runs;
    std::vector<ChunkUse> uses;  // of each; in steps of work of the device
  };
  static int64_t MostAtOnce(const std::vector<ChunkUse>& uses);
  static void AddStaying(const Runs& runs, const std::vector<bool>& stays,
                         StayingRuns& staying);

  Runs fetched_;
  Runs activations_;
};

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PASSES_STAY_ON_DEVICE_H_
