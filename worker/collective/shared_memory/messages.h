// Send and recv of a group that shares a segment: a message passes through the
// slots of its channel in chunks, while the sender fills one and the receiver
// empties the other.
#ifndef TROUPE_WORKER_COLLECTIVE_SHARED_MEMORY_MESSAGES_H_
#define TROUPE_WORKER_COLLECTIVE_SHARED_MEMORY_MESSAGES_H_

#include "absl/status/status.h"
#include "worker/collective/comm_buffer.h"
#include "worker/collective/communicator.h"
#include "worker/collective/shared_memory/phases.h"

namespace troupe {

// Within an operation of the phases. REQUIRES data, peer != phases.rank().
absl::Status SharedSend(Phases& phases, CommBuffer data, int peer);
// Internal: the message has another size.
absl::Status SharedRecv(Phases& phases, CommBuffer data, int peer);

// Both at once, whichever can go on: neither waits for the other.
absl::Status SharedShift(Phases& phases, const ShiftBuffers& buffers);

}  // namespace troupe

#endif  // TROUPE_WORKER_COLLECTIVE_SHARED_MEMORY_MESSAGES_H_
