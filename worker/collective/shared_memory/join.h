// How the members of a group come to share a segment.
//
// Rank 0 makes it and sets "<group>/shared_memory/0" to its memory domain and
// the segment's address. Each other rank opens it and sets
// "<group>/shared_memory/<rank>" to "ok", or to what went wrong. Then each
// reads what all have set: so all know, or none does, that the segment is
// shared, and rank 0 closes it to others.
#ifndef TROUPE_WORKER_COLLECTIVE_SHARED_MEMORY_JOIN_H_
#define TROUPE_WORKER_COLLECTIVE_SHARED_MEMORY_JOIN_H_

#include "absl/status/statusor.h"
#include "worker/collective/communicator_seat.h"
#include "worker/collective/shared_memory/segment.h"

namespace troupe {

// The segment, laid out by SegmentMap; all ranks have set their MemberState's
// process. FailedPrecondition, at all members alike: not all of them can open
// it, and which cannot. Errors of the store, and DeadlineExceeded, name the
// global rank that did not come.
absl::StatusOr<SharedSegment> JoinSegment(const CommunicatorSeat& seat);

}  // namespace troupe

#endif  // TROUPE_WORKER_COLLECTIVE_SHARED_MEMORY_JOIN_H_
