// What a rank brings to join a group.
#ifndef TROUPE_WORKER_COLLECTIVE_COMMUNICATOR_SEAT_H_
#define TROUPE_WORKER_COLLECTIVE_COMMUNICATOR_SEAT_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "ops/device.h"
#include "storage/tier/arena.h"
#include "worker/collective/communicator.h"
#include "worker/collective/join_abort.h"
#include "worker/collective/key_value_store.h"
#include "worker/collective/watch.h"

namespace troupe {

// The host memory that they are staged through: as many bytes as the largest
// operation needs, of a budget. Null: what the device gives, when it is needed.
struct StagingMemory {
  Arena* arena = nullptr;
  std::string line_item;
  int64_t bytes = 0;
};

struct CommunicatorSeat {
  CommGroup group;  // its name is unique in the store: keys start with it
  int rank = 0;     // index into group.ranks
  KeyValueStore* store = nullptr;  // shared by the members; used while joining
  // Where this rank listens: an address or host name that the others can reach,
  // or, where `interface` is not empty, the address of that interface.
  std::string host = "127.0.0.1";
  std::string interface;
  absl::Duration timeout = absl::Minutes(1);  // for all to come
  JoinAbort* abort = nullptr;  // ends the wait for them; null: nobody does
  Device* device = nullptr;    // where the buffers lie; null: in host memory
  StagingMemory staging;       // where they are staged through the host
  // Sums are taken in the order of the members, whatever it costs, as shared
  // memory takes them.
  bool in_order = false;
  // Looks after what is under way in all communicators of the rank; null: each
  // has one of its own.
  std::shared_ptr<Watch> watch;
};

inline std::shared_ptr<Watch> WatchOf(const CommunicatorSeat& seat) {
  return seat.watch != nullptr ? seat.watch : std::make_shared<Watch>();
}

}  // namespace troupe

#endif  // TROUPE_WORKER_COLLECTIVE_COMMUNICATOR_SEAT_H_
