// Every byte that a rank uses for a job: the slots of its role, allocated once
// when the job starts, from the arenas of their tiers, and given back when this
// is destroyed. A buffer lies in its slot where the plan says.
// Slots of one tier and line item lie one after another in one block. Those of
// PARAMETER_GRADIENTS do so in the order of their units, so that the gradients
// of consecutive units are one range and can be summed in one collective. The
// copies of a slot that has several lie behind one another: versions of
// weights, activations of a step that is computed ahead. Blocks of the nvme
// tier are ranges of one spill file, which is the rank's.
#ifndef TROUPE_WORKER_RANK_RANK_MEMORY_H_
#define TROUPE_WORKER_RANK_RANK_MEMORY_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "proto/plan.pb.h"
#include "proto/program.pb.h"
#include "storage/engine/engine.h"
#include "storage/spill/spill_file.h"
#include "storage/tier/arena.h"
#include "worker/rank/tier_address.h"
#include "worker/rank/tier_arenas.h"

namespace troupe {

// The owner of memory, as the spill file says.
struct MemoryOwner {
  std::string job;
  int rank = 0;
  ArenaBlock copies = {};  // of an earlier attempt; empty: there was none
};

// Immutable after Create; the bytes themselves are the instructions' affair.
class RankMemory {
 public:
  // Borrows the arenas. ResourceExhausted where a tier's budget is too small,
  // with the line item; FailedPrecondition for a tier that the worker lacks;
  // what the disk of the nvme tier says (spill_file.h).
  static absl::StatusOr<RankMemory> Create(const Role& role,
                                           const TierArenas& arenas,
                                           MemoryOwner owner = {});

  // Where the copy begins that the buffer is in the program that runs for
  // `step`, which may be 0 or less; nowhere where it has no bytes.
  TierAddress At(const Buffer& buffer, int64_t step) const;
  // The buffer's place in all copies of its slot, one where nothing else is
  // said.
  std::vector<TierAddress> Copies(const Buffer& buffer) const;

  // Gives up the memory of state copies, for the next attempt.
  ArenaBlock TakeCopies() { return std::move(copies_); }

  // Null where nothing is in the nvme tier.
  SpillFile* spill() const { return spill_.get(); }
  // An engine for a thread that moves what is there.
  absl::StatusOr<std::unique_ptr<IoEngine>> NewEngine() const {
    return arenas_->nvme().new_engine();
  }
  // The blocks of the host tier that values come to from nvme, or go there.
  const std::vector<absl::Span<char>>& MovedByNvme() const { return moved_; }

 private:
  explicit RankMemory(const TierArenas& arenas) : arenas_(&arenas) {}

  const TierArenas* arenas_;
  std::unique_ptr<SpillFile> spill_;
  std::vector<ArenaBlock> blocks_;
  ArenaBlock copies_;  // of the states, where the plan has such
  std::vector<absl::Span<char>> moved_;
  struct Place {
    Slot slot;
    std::vector<TierAddress> copies;
  };
  std::vector<Place> places_;  // by slot
};

// A resident buffer of a unit, where it rests, looked up in any program that
// has it; null where none does. `unit` absent: a buffer of the rank.
const Buffer* FindResident(const Role& role, Buffer::Kind kind,
                           absl::optional<int> unit);

}  // namespace troupe

#endif  // TROUPE_WORKER_RANK_RANK_MEMORY_H_
