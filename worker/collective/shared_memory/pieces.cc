#include "worker/collective/shared_memory/pieces.h"

#include <algorithm>
#include <cstring>

#include "worker/collective/reduce.h"

namespace troupe {

Pieces::Pieces(Phases& phases, CopyKind kind, DType element, int64_t bytes)
    : phases_(phases),
      kind_(kind),
      map_(phases.map()),
      elements_(bytes / static_cast<int64_t>(DTypeBytes(element))) {}

int64_t Pieces::CountIn(int64_t elements) const {
  return (elements + elements_ - 1) / elements_;
}

CommBuffer Pieces::Of(const CommBuffer& buffer, int64_t t) const {
  const int64_t begin = std::min(t * elements_, buffer.elements);
  return buffer.Slice(begin, std::min(begin + elements_, buffer.elements));
}

void Pieces::Put(char* slot, const CommBuffer& piece, int readers) const {
  const size_t bytes = piece.bytes();
  CopyAs(kind_, slot, piece.data, bytes);
  phases_.CountGiven(static_cast<int64_t>(bytes) * readers);
}

void Pieces::Take(const CommBuffer& piece, const char* slot) {
  if (piece.elements > 0) std::memcpy(piece.data, slot, piece.bytes());
}

char* Pieces::Given() const {
  return map_.in_slot({.rank = phases_.rank(), .parity = phases_.writes()});
}

const char* Pieces::TakenFrom(int from) const {
  return map_.in_slot({.rank = from, .parity = phases_.reads()});
}

int64_t Pieces::SharePlace(int rank) const { return rank * map_.piece_bytes(); }

void Pieces::GiveShares(const CommBlocks& blocks, int64_t t) const {
  for (int rank = 0; rank < phases_.ranks(); ++rank) {
    if (rank == phases_.rank()) continue;
    Put(Given() + SharePlace(rank), Of(blocks.Of(rank), t), /*readers=*/1);
  }
}

CommBuffer Pieces::ReduceOwn(const CommBlocks& blocks, const CommBuffer& into,
                             int64_t t, ReduceOp op) {
  const CommBuffer sum = Of(into, t);
  if (sum.elements > 0) {
    ReduceRows(
        op, sum,
        Rows(Of(blocks.Of(phases_.rank()), t), SharePlace(phases_.rank())));
  }
  return sum;
}

const std::vector<CommBuffer>& Pieces::Rows(const CommBuffer& own,
                                            int64_t place) {
  rows_.clear();
  for (int rank = 0; rank < phases_.ranks(); ++rank) {
    rows_.push_back(own);
    if (rank == phases_.rank()) continue;
    rows_.back().data = const_cast<char*>(TakenFrom(rank)) + place;
  }
  return rows_;
}

}  // namespace troupe
