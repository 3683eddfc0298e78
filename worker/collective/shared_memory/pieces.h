// Buffers that pass through the slots of a segment piece by piece: what
// collectives are made of.
#ifndef TROUPE_WORKER_COLLECTIVE_SHARED_MEMORY_PIECES_H_
#define TROUPE_WORKER_COLLECTIVE_SHARED_MEMORY_PIECES_H_

#include <cstdint>
#include <vector>

#include "worker/collective/blocks.h"
#include "worker/collective/communicator.h"
#include "worker/collective/shared_memory/copy_choice.h"
#include "worker/collective/shared_memory/phases.h"

namespace troupe {

// Of one operation. Borrows the phases.
class Pieces {
 public:
  // Of no more than `bytes` bytes each.
  Pieces(Phases& phases, CopyKind kind, DType element, int64_t bytes);

  int64_t CountIn(int64_t elements) const;
  // Piece t of a buffer; empty after its end.
  CommBuffer Of(const CommBuffer& buffer, int64_t t) const;

  // Into a slot that this phase writes, and `readers` ranks read.
  void Put(char* slot, const CommBuffer& piece, int readers) const;
  // From a slot that this phase reads.
  static void Take(const CommBuffer& piece, const char* slot);

  // In slots: what `from` gives, for the owner of a block where it is cut up.
  char* Given() const;
  const char* TakenFrom(int from) const;
  int64_t SharePlace(int rank) const;

  // Piece t of each other rank's block, into our in slot.
  void GiveShares(const CommBlocks& blocks, int64_t t) const;
  // Piece t of our block: the sum of what all gave, into the same piece of
  // `into`, which it returns.
  CommBuffer ReduceOwn(const CommBlocks& blocks, const CommBuffer& into,
                       int64_t t, ReduceOp op);
  // The same range of all ranks: ours from the buffer, theirs from `place` of
  // their in slots.
  const std::vector<CommBuffer>& Rows(const CommBuffer& own, int64_t place);

 private:
  Phases& phases_;
  const CopyKind kind_;
  const SegmentMap& map_;
  const int64_t elements_;  // of a piece
  std::vector<CommBuffer> rows_;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_COLLECTIVE_SHARED_MEMORY_PIECES_H_
