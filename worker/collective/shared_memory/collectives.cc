#include "worker/collective/shared_memory/collectives.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "proto/base/clock.h"
#include "proto/base/status.h"
#include "proto/plan/layout.h"
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
  Pieces(Phases& phases, CopyKind kind, CommBuffer data, int64_t bytes)
      : phases_(phases),
        kind_(kind),
        map_(phases.map()),
        data_(data),
        elements_(bytes / static_cast<int64_t>(ElementBytes(data.element))) {}

  int me() const { return phases_.rank(); }
  int ranks() const { return phases_.ranks(); }
  Range Block(int rank) const {
    return EvenPiece(data_.elements, {.index = rank, .count = ranks()});
  }
  // Of the longest range.
  int64_t CountIn(int64_t elements) const {
    return (elements + elements_ - 1) / elements_;
  }
  // Piece t of a range.
  CommBuffer Of(const Range& range, int64_t t) const {
    const int64_t begin = std::min(range.begin + t * elements_, range.end);
    return data_.Slice(begin, std::min(begin + elements_, range.end));
  }
  CommBuffer OfBlock(int rank, int64_t t) const { return Of(Block(rank), t); }

  void Put(char* slot, CommBuffer piece) const {
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
  void GiveShares(int64_t t) const {
    for (int rank = 0; rank < ranks(); ++rank) {
      if (rank == me()) continue;
      Put(Given() + SharePlace(rank), OfBlock(rank, t));
    }
  }
  // Piece t of our block: the sum of what all gave.
  CommBuffer ReduceOwn(int64_t t, ReduceOp op) {
    const CommBuffer own = OfBlock(me(), t);
    if (own.elements > 0) ReduceRows(op, own, Rows(own, SharePlace(me())));
    return own;
  }
  // The same range of all ranks: ours from the buffer, theirs from `place` of
  // their in slots.
  const std::vector<CommBuffer>& Rows(CommBuffer own, int64_t place) {
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
  const CommBuffer data_;
  const int64_t elements_;  // of a piece
  std::vector<CommBuffer> rows_;
};

absl::Status DirectAllReduce(Phases& phases, CopyKind kind, CommBuffer data,
                             ReduceOp op) {
  Pieces pieces(phases, kind, data, phases.map().slot_bytes());
  pieces.Put(pieces.Given(), data);
  RETURN_IF_ERROR(phases.Next());
  ReduceRows(op, data, pieces.Rows(data, 0));
  return absl::OkStatus();
}

}  // namespace

absl::Status SharedAllReduce(Phases& phases, CopyKind kind, CommBuffer data,
                             ReduceOp op) {
  const SegmentMap& map = phases.map();
  if (static_cast<int64_t>(data.bytes()) <=
      std::min(kDirectBytesMax, map.slot_bytes())) {
    return DirectAllReduce(phases, kind, data, op);
  }
  Pieces pieces(phases, kind, data, map.piece_bytes());
  const int64_t count = pieces.CountIn(pieces.Block(0).size());
  for (int64_t t = 0; t < count + 2; ++t) {
    if (t > 0) RETURN_IF_ERROR(phases.Next());
    if (t < count) pieces.GiveShares(t);
    if (t >= 1 && t - 1 < count) {
      const CommBuffer own = pieces.ReduceOwn(t - 1, op);
      pieces.Put(
          map.out_slot({.rank = phases.rank(), .parity = phases.writes()}),
          own);
    }
    if (t < 2) continue;
    for (int rank = 0; rank < phases.ranks(); ++rank) {
      if (rank == phases.rank()) continue;
      const CommBuffer piece = pieces.OfBlock(rank, t - 2);
      Copy(piece.data, map.out_slot({.rank = rank, .parity = phases.reads()}),
           piece.bytes());
    }
  }
  return absl::OkStatus();
}

absl::Status SharedReduceScatter(Phases& phases, CopyKind kind, CommBuffer data,
                                 ReduceOp op) {
  Pieces pieces(phases, kind, data, phases.map().piece_bytes());
  const int64_t count = pieces.CountIn(pieces.Block(0).size());
  for (int64_t t = 0; t < count + 1; ++t) {
    if (t > 0) RETURN_IF_ERROR(phases.Next());
    if (t < count) pieces.GiveShares(t);
    if (t > 0) pieces.ReduceOwn(t - 1, op);
  }
  return absl::OkStatus();
}

absl::Status SharedAllGather(Phases& phases, CopyKind kind, CommBuffer data) {
  Pieces pieces(phases, kind, data, phases.map().slot_bytes());
  const int64_t count = pieces.CountIn(pieces.Block(0).size());
  for (int64_t t = 0; t < count + 1; ++t) {
    if (t > 0) RETURN_IF_ERROR(phases.Next());
    if (t < count) {
      pieces.Put(pieces.Given(), pieces.OfBlock(phases.rank(), t));
    }
    if (t == 0) continue;
    for (int rank = 0; rank < phases.ranks(); ++rank) {
      if (rank == phases.rank()) continue;
      const CommBuffer piece = pieces.OfBlock(rank, t - 1);
      Copy(piece.data, pieces.TakenFrom(rank), piece.bytes());
    }
  }
  return absl::OkStatus();
}

absl::Status SharedBroadcast(Phases& phases, CopyKind kind, CommBuffer data,
                             int root) {
  Pieces pieces(phases, kind, data, phases.map().slot_bytes());
  const Range all = {0, data.elements};
  const int64_t count = pieces.CountIn(data.elements);
  for (int64_t t = 0; t < count + 1; ++t) {
    if (t > 0) RETURN_IF_ERROR(phases.Next());
    if (phases.rank() == root) {
      pieces.Put(pieces.Given(), pieces.Of(all, t));  // none after the last
    } else if (t > 0) {
      const CommBuffer piece = pieces.Of(all, t - 1);
      Copy(piece.data, pieces.TakenFrom(root), piece.bytes());
    }
  }
  return absl::OkStatus();
}

absl::Status SharedAllToAll(Phases& phases, CopyKind kind,
                            const AllToAllBuffers& buffers) {
  Pieces send(phases, kind, buffers.send, phases.map().piece_bytes());
  Pieces receive(phases, kind, buffers.receive, phases.map().piece_bytes());
  const int me = phases.rank();
  const int64_t count = send.CountIn(send.Block(0).size());
  for (int64_t t = 0; t < count + 1; ++t) {
    if (t > 0) RETURN_IF_ERROR(phases.Next());
    if (t < count) send.GiveShares(t);
    if (t == 0) continue;
    for (int rank = 0; rank < phases.ranks(); ++rank) {
      const CommBuffer piece = receive.OfBlock(rank, t - 1);
      const void* from = rank == me
                             ? send.OfBlock(me, t - 1).data
                             : receive.TakenFrom(rank) + send.SharePlace(me);
      Copy(piece.data, from, piece.bytes());
    }
  }
  return absl::OkStatus();
}

absl::Status TryCopies(Phases& phases, CopyChoice& choice) {
  std::vector<int32_t> zeros(2 * phases.map().slot_bytes() / sizeof(int32_t));
  const CommBuffer data = CommBuffer::Of(absl::MakeSpan(zeros));
  const RealClock clock;
  return choice.Try([&](CopyKind kind) -> absl::StatusOr<absl::Duration> {
    const int64_t start = clock.MonotonicNanos();
    RETURN_IF_ERROR(SharedAllReduce(phases, kind, data, ReduceOp::kSum));
    return absl::Nanoseconds(clock.MonotonicNanos() - start);
  });
}

}  // namespace troupe
