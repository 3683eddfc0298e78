// The lanes of a plan: queues that each rank works off in order, side by side
// (Plan.lanes). Instructions name theirs by its index, and nothing asks which
// lane that is, only of what kind: what a kind means is here. The planner's
// table of them is scheduler/passes/lanes.cc.
#ifndef TROUPE_PROTO_PLAN_LANES_H_
#define TROUPE_PROTO_PLAN_LANES_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "google/protobuf/repeated_field.h"
#include "proto/cluster.pb.h"
#include "proto/program.pb.h"

namespace troupe {

using Lanes = google::protobuf::RepeatedPtrField<Lane>;

// Whether the lane is a queue of the rank's device, and not of its host.
inline bool IsDeviceLane(const Lane& lane) {
  return lane.kind() == Lane::COMPUTE || lane.kind() == Lane::TRANSFER;
}

// In which tier instructions of such a lane use their operands; nothing where
// they take them wherever they rest. FETCH and EVICT, which go from one tier to
// another, are of any.
inline absl::optional<Tier> TierOfOperands(Lane::Kind kind) {
  switch (kind) {
    case Lane::COMPUTE:
    case Lane::TRANSFER:
      return DEVICE;
    case Lane::HOST:
      return HOST;
    default:
      return absl::nullopt;
  }
}

// Of the lane with this index; KIND_UNSPECIFIED where there is none.
inline Lane::Kind KindOfLane(const Lanes& lanes, int index) {
  const bool there = index >= 0 && index < lanes.size();
  return there ? lanes[index].kind() : Lane::KIND_UNSPECIFIED;
}

// For messages; "lane 9" where there is none.
std::string NameOfLane(const Lanes& lanes, int index);

// Index of the lane of this name, or of the one that instructions of a kind run
// on unless a pass says otherwise; -1 where there is none.
int FindLane(const Lanes& lanes, absl::string_view name);
int UsualLane(const Lanes& lanes, Instruction::Kind kind);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_LANES_H_
