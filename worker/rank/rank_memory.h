// Every byte that a rank uses for a job: the slots of its role, allocated once
// when the job starts, from the arenas of their tiers, and given back when this
// is destroyed. A buffer lies in its slot where the plan says. Slots of one
// tier and line item lie one after another in one block. Those of
// PARAMETER_GRADIENTS do so in the order of their units, so that the gradients
// of consecutive units are one range and can be summed in one collective. The
// copies of a slot that has several lie behind one another: versions of
// weights, activations of a step that is computed ahead.
#ifndef TROUPE_WORKER_RANK_RANK_MEMORY_H_
#define TROUPE_WORKER_RANK_RANK_MEMORY_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "proto/plan.pb.h"
#include "proto/program.pb.h"
#include "storage/tier/arena.h"
#include "worker/rank/tier_arenas.h"

namespace troupe {

// Immutable after Create; the bytes themselves are the instructions' affair.
class RankMemory {
 public:
  // ResourceExhausted where a tier's budget is too small, with the line item;
  // FailedPrecondition for a tier that the worker lacks.
  static absl::StatusOr<RankMemory> Create(const Role& role,
                                           const TierArenas& arenas);

  // The first byte of the copy that the buffer is in the program that runs for
  // `step`, which may be 0 or less; null where it has no bytes.
  char* At(const Buffer& buffer, int64_t step) const;
  // The buffer's place in all copies of its slot, one where nothing else is
  // said.
  std::vector<char*> Copies(const Buffer& buffer) const;

 private:
  RankMemory() = default;

  std::vector<ArenaBlock> blocks_;
  struct Place {
    Slot slot;
    std::vector<char*> copies;
  };
  std::vector<Place> places_;  // by slot
};

// A resident buffer of a unit, looked up in any program that has it; null where
// none does. `unit` absent: a buffer of the rank.
const Buffer* FindResident(const Role& role, Buffer::Kind kind,
                           absl::optional<int> unit);

}  // namespace troupe

#endif  // TROUPE_WORKER_RANK_RANK_MEMORY_H_
