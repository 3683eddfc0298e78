#include "worker/collective/shared_memory/collectives.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "proto/base/clock.h"
#include "proto/base/status.h"
#include "worker/collective/reduce.h"

namespace troupe {
namespace {

// Below it a phase more costs more than to add up what others could.
constexpr int64_t kDirectBytesMax = 32 << 10;

void Copy(void* to, const void* from, size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}

// Buffers in pieces, and the slots that they pass through in this phase.
class Pieces {
 public:
  // Of no more than so many bytes each.
  Pieces(Phases& phases, CopyKind kind, Element element, int64_t bytes)
      : phases_(phases),
        kind_(kind),
        map_(phases.map()),
        elements_(bytes / static_cast<int64_t>(ElementBytes(element))) {}

  int me() const { return phases_.rank(); }
  int ranks() const { return phases_.ranks(); }
  int64_t CountIn(int64_t elements) const {
    return (elements + elements_ - 1) / elements_;
  }
  // Piece t of a buffer; empty after its end.
  CommBuffer Of(const CommBuffer& buffer, int64_t t) const {
    const int64_t begin = std::min(t * elements_, buffer.elements);
    return buffer.Slice(begin, std::min(begin + elements_, buffer.elements));
  }

  void Put(char* slot, const CommBuffer& piece) const {
    CopyAs(kind_, slot, piece.data, piece.bytes());
  }

  // In slots: what `from` gives, for the owner of a block where it is cut up.
  char* Given() const {
    return map_.in_slot({.rank = me(), .parity = phases_.writes()});
  }
  const char* TakenFrom(int from) const {
    return map_.in_slot({.rank = from, .parity = phases_.reads()});
  }
  int64_t SharePlace(int rank) const { return rank * map_.piece_bytes(); }

  // Piece t of each other rank's block, into our in slot.
  void GiveShares(const CommBlocks& blocks, int64_t t) const {
    for (int rank = 0; rank < ranks(); ++rank) {
      if (rank == me()) continue;
      Put(Given() + SharePlace(rank), Of(blocks.Of(rank), t));
    }
  }
  // Piece t of our block: the sum of what all gave, into the same piece of
  // `into`, which it returns.
  CommBuffer ReduceOwn(const CommBlocks& blocks, const CommBuffer& into,
                       int64_t t, ReduceOp op) {
    const CommBuffer sum = Of(into, t);
    if (sum.elements > 0) {
      ReduceRows(op, sum, Rows(Of(blocks.Of(me()), t), SharePlace(me())));
    }
    return sum;
  }
  // The same range of all ranks: ours from the buffer, theirs from `place` of
  // their in slots.
  const std::vector<CommBuffer>& Rows(const CommBuffer& own, int64_t place) {
    rows_.clear();
    for (int rank = 0; rank < ranks(); ++rank) {
      rows_.push_back(own);
      if (rank == me()) continue;
      rows_.back().data = const_cast<char*>(TakenFrom(rank)) + place;
    }
    return rows_;
  }

 private:
  Phases& phases_;
  const CopyKind kind_;
  const SegmentMap& map_;
  const int64_t elements_;  // of a piece
  std::vector<CommBuffer> rows_;
};

absl::Status DirectAllReduce(Phases& phases, CopyKind kind,
                             const CommBuffer& data, ReduceOp op) {
  Pieces pieces(phases, kind, data.element, phases.map().slot_bytes());
  pieces.Put(pieces.Given(), data);
  RETURN_IF_ERROR(phases.Next());
  ReduceRows(op, data, pieces.Rows(data, 0));
  return absl::OkStatus();
}

}  // namespace

absl::Status SharedAllReduce(Phases& phases, CopyKind kind,
                             const CommBlocks& data, ReduceOp op) {
  const SegmentMap& map = phases.map();
  if (static_cast<int64_t>(data.whole.bytes()) <=
      std::min(kDirectBytesMax, map.slot_bytes())) {
    return DirectAllReduce(phases, kind, data.whole, op);
  }
  Pieces pieces(phases, kind, data.whole.element, map.piece_bytes());
  const CommBuffer own = data.Of(phases.rank());
  const int64_t count = pieces.CountIn(data.longest());
  for (int64_t t = 0; t < count + 2; ++t) {
    if (t > 0) RETURN_IF_ERROR(phases.Next());
    if (t < count) pieces.GiveShares(data, t);
    if (t >= 1 && t - 1 < count) {
      const CommBuffer sum = pieces.ReduceOwn(data, own, t - 1, op);
      pieces.Put(
          map.out_slot({.rank = phases.rank(), .parity = phases.writes()}),
          sum);
    }
    if (t < 2) continue;
    for (int rank = 0; rank < phases.ranks(); ++rank) {
      if (rank == phases.rank()) continue;
      const CommBuffer piece = pieces.Of(data.Of(rank), t - 2);
      Copy(piece.data, map.out_slot({.rank = rank, .parity = phases.reads()}),
           piece.bytes());
    }
  }
  return absl::OkStatus();
}

absl::Status SharedReduceScatter(Phases& phases, CopyKind kind,
                                 const CommBlocks& send,
                                 const CommBuffer& receive, ReduceOp op) {
  Pieces pieces(phases, kind, receive.element, phases.map().piece_bytes());
  const int64_t count = pieces.CountIn(send.longest());
  for (int64_t t = 0; t < count + 1; ++t) {
    if (t > 0) RETURN_IF_ERROR(phases.Next());
    if (t < count) pieces.GiveShares(send, t);
    if (t > 0) pieces.ReduceOwn(send, receive, t - 1, op);
  }
  return absl::OkStatus();
}

absl::Status SharedAllGather(Phases& phases, CopyKind kind,
                             const CommBuffer& send,
                             const CommBlocks& receive) {
  Pieces pieces(phases, kind, send.element, phases.map().slot_bytes());
  const CommBuffer own = receive.Of(phases.rank());
  const int64_t count = pieces.CountIn(receive.longest());
  for (int64_t t = 0; t < count + 1; ++t) {
    if (t > 0) RETURN_IF_ERROR(phases.Next());
    if (t < count) {
      const CommBuffer piece = pieces.Of(send, t);
      pieces.Put(pieces.Given(), piece);
      // While the cache has it.
      if (own.data != send.data) {
        Copy(pieces.Of(own, t).data, piece.data, piece.bytes());
      }
    }
    if (t == 0) continue;
    for (int rank = 0; rank < phases.ranks(); ++rank) {
      if (rank == phases.rank()) continue;
      const CommBuffer piece = pieces.Of(receive.Of(rank), t - 1);
      Copy(piece.data, pieces.TakenFrom(rank), piece.bytes());
    }
  }
  return absl::OkStatus();
}

absl::Status SharedBroadcast(Phases& phases, CopyKind kind, CommBuffer data,
                             int root) {
  Pieces pieces(phases, kind, data.element, phases.map().slot_bytes());
  const int64_t count = pieces.CountIn(data.elements);
  for (int64_t t = 0; t < count + 1; ++t) {
    if (t > 0) RETURN_IF_ERROR(phases.Next());
    if (phases.rank() == root) {
      pieces.Put(pieces.Given(), pieces.Of(data, t));  // none after the last
    } else if (t > 0) {
      const CommBuffer piece = pieces.Of(data, t - 1);
      Copy(piece.data, pieces.TakenFrom(root), piece.bytes());
    }
  }
  return absl::OkStatus();
}

absl::Status SharedAllToAll(Phases& phases, CopyKind kind,
                            const CommBlocks& send, const CommBlocks& receive) {
  Pieces pieces(phases, kind, send.whole.element, phases.map().piece_bytes());
  const int me = phases.rank();
  const int64_t count = pieces.CountIn(send.longest());
  for (int64_t t = 0; t < count + 1; ++t) {
    if (t > 0) RETURN_IF_ERROR(phases.Next());
    if (t < count) pieces.GiveShares(send, t);
    if (t == 0) continue;
    for (int rank = 0; rank < phases.ranks(); ++rank) {
      const CommBuffer piece = pieces.Of(receive.Of(rank), t - 1);
      const void* from = rank == me
                             ? pieces.Of(send.Of(me), t - 1).data
                             : pieces.TakenFrom(rank) + pieces.SharePlace(me);
      Copy(piece.data, from, piece.bytes());
    }
  }
  return absl::OkStatus();
}

absl::Status TryCopies(Phases& phases, CopyChoice& choice) {
  std::vector<int32_t> zeros(2 * phases.map().slot_bytes() / sizeof(int32_t));
  const int64_t count = static_cast<int64_t>(zeros.size());
  std::vector<ElementRange> ranges(phases.ranks());
  for (int rank = 0; rank < phases.ranks(); ++rank) {
    ranges[rank] =
        BlockOf({.elements = count, .members = phases.ranks()}, rank);
  }
  const CommBlocks data = {CommBuffer::Of(absl::MakeSpan(zeros)), ranges};
  const RealClock clock;
  return choice.Try([&](CopyKind kind) -> absl::StatusOr<absl::Duration> {
    const int64_t start = clock.MonotonicNanos();
    RETURN_IF_ERROR(SharedAllReduce(phases, kind, data, ReduceOp::kSum));
    return absl::Nanoseconds(clock.MonotonicNanos() - start);
  });
}

}  // namespace troupe
