// In which tier of memory each value rests between uses (ZeRO-Offload, arXiv
// 2101.06840; ZeRO-Infinity, 2104.07857): a row, of which everything else
// follows. A unit's parts have it then (proto/plan/part_state.h). Where an
// instruction uses a value elsewhere, a pass moves it
// (scheduler/passes/move_between_tiers.h).
#ifndef TROUPE_SCHEDULER_TIERS_OFFLOAD_H_
#define TROUPE_SCHEDULER_TIERS_OFFLOAD_H_

#include "proto/cluster.pb.h"
#include "proto/job.pb.h"
#include "proto/program.pb.h"

namespace troupe {

// Values of this kind, for as long as nothing uses them. What the spec leaves
// out rests on the device.
Tier RestsIn(const MemorySpec& memory, Buffer::Kind kind);

// Whether the optimizer runs on the host's cores: where its states are below
// the device, they are not brought there, but gradients to them.
bool StepsOnHost(const MemorySpec& memory);

// Whether anything rests below the device that may stay there between its uses
// (memory.chunk_megabytes): parameters, their gradients, activations.
bool MayStayOnDevice(const MemorySpec& memory);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_TIERS_OFFLOAD_H_
