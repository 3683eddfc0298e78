// What all parts of a unit have in common, as they lie in its buffers: in which
// types its parameters and their gradients are, and in which tiers of memory
// they are stored between uses. check_parts proves that they agree.
#ifndef TROUPE_PROTO_PLAN_PART_STATE_H_
#define TROUPE_PROTO_PLAN_PART_STATE_H_

#include <cstdint>

#include "proto/cluster.pb.h"
#include "proto/program.pb.h"
#include "proto/unit.pb.h"

namespace troupe {

// F32 where a unit has no part that says it.
ElementType ParametersType(const Unit& unit);
ElementType GradientsType(const Unit& unit);

// Bytes of an element of the unit's flat buffer in a buffer of the kind; 0: it
// is none of those.
int64_t BytesOfFlat(const Unit& unit, Buffer::Kind kind);

// The tier in which buffers of the kind are stored: parameters, their
// gradients, optimizer states and master weights. Others: DEVICE.
Tier TierOfFlat(const Unit& unit, Buffer::Kind kind);

// Whether the optimizer runs on the host's cores: where its states are stored
// below the device, gradients are brought to them.
bool StepsOnHost(const Unit& unit);

// Whether gradients of its parameters are used on the device only, so that they
// never move.
bool GradientsStayOnDevice(const Unit& unit);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_PART_STATE_H_
