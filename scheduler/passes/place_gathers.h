// How far ahead of their use gathers run, where it is said how many bytes whole
// units may take for it (Draft.unsharded_bytes): each gather begins as
// early as there is a place for its unit within them, beside the units that are
// whole by then and the gradients of such. They keep their order, as they share
// a lane: a large unit's begins when there is room for it in one piece, and
// many small ones may be whole at one time.
//
// When and where are one question here: units of several sizes that begin as
// early as their sum allows would need half as much again to lie in.
#ifndef TROUPE_SCHEDULER_PASSES_PLACE_GATHERS_H_
#define TROUPE_SCHEDULER_PASSES_PLACE_GATHERS_H_

#include <cstdint>
#include <map>
#include <vector>

#include "absl/types/optional.h"
#include "proto/program.pb.h"
#include "scheduler/passes/pack_buffers.h"

namespace troupe {

struct GatherPlaces {
  // By instruction: of a GATHER_PARAMETERS into a buffer of its own, from which
  // instruction on it has its place, that one included; of others their own
  // index.
  std::vector<int> since;
  std::map<int, int64_t> offsets;  // by buffer, those beside them too
  int64_t bytes = 0;               // that all of it takes
};

// What is there beside whole units, by buffer; it has no place yet.
using BesideGathers = std::map<int, Tenant>;

// nullopt: there is no place for a unit even while it is used. REQUIRES
// buffers.
absl::optional<GatherPlaces> PlaceGathers(const Program& program,
                                          const BesideGathers& beside,
                                          int64_t bytes);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PASSES_PLACE_GATHERS_H_
