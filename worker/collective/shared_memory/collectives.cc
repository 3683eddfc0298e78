#include "worker/collective/shared_memory/collectives.h"

#include <algorithm>
#include <vector>

#include "proto/base/clock.h"
#include "proto/base/status.h"
#include "worker/collective/reduce.h"
#include "worker/collective/shared_memory/pieces.h"

namespace troupe {
namespace {

// Below it a phase more costs more than to add up what others could.
constexpr int64_t kDirectBytesMax = 32 << 10;

constexpr int kAll = -1;  // a root: the sum is for everybody

int ReadersOf(const Phases& phases, int root) {
  return root == kAll ? phases.ranks() - 1 : 1;
}

absl::Status DirectReduce(Phases& phases, CopyKind kind, const CommBuffer& data,
                          int root, ReduceOp op) {
  Pieces pieces(phases, kind, data.element, phases.map().slot_bytes());
  if (root != phases.rank()) {
    pieces.Put(pieces.Given(), data, ReadersOf(phases, root));
  }
  RETURN_IF_ERROR(phases.Next());
  if (root == kAll || root == phases.rank()) {
    ReduceRows(op, data, pieces.Rows(data, 0));
  }
  return absl::OkStatus();
}

absl::Status ReduceTo(Phases& phases, CopyKind kind, const CommBlocks& data,
                      int root, ReduceOp op) {
  const SegmentMap& map = phases.map();
  if (static_cast<int64_t>(data.whole.bytes()) <=
      std::min(kDirectBytesMax, map.slot_bytes())) {
    return DirectReduce(phases, kind, data.whole, root, op);
  }
  Pieces pieces(phases, kind, data.whole.element, map.piece_bytes());
  const CommBuffer own = data.Of(phases.rank());
  const bool takes = root == kAll || root == phases.rank();
  const int64_t count = pieces.CountIn(data.longest());
  for (int64_t t = 0; t < count + 2; ++t) {
    if (t > 0) RETURN_IF_ERROR(phases.Next());
    if (t < count) pieces.GiveShares(data, t);
    if (t >= 1 && t - 1 < count) {
      const CommBuffer sum = pieces.ReduceOwn(data, own, t - 1, op);
      if (root != phases.rank()) {
        pieces.Put(
            map.out_slot({.rank = phases.rank(), .parity = phases.writes()}),
            sum, ReadersOf(phases, root));
      }
    }
    if (t < 2 || !takes) continue;
    for (int rank = 0; rank < phases.ranks(); ++rank) {
      if (rank == phases.rank()) continue;
      Pieces::Take(pieces.Of(data.Of(rank), t - 2),
                   map.out_slot({.rank = rank, .parity = phases.reads()}));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status SharedAllReduce(Phases& phases, CopyKind kind,
                             const CommBlocks& data, ReduceOp op) {
  return ReduceTo(phases, kind, data, kAll, op);
}

absl::Status SharedReduce(Phases& phases, CopyKind kind, const CommBlocks& data,
                          int root, ReduceOp op) {
  return ReduceTo(phases, kind, data, root, op);
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
      pieces.Put(pieces.Given(), piece, phases.ranks() - 1);
      // While the cache has it.
      if (own.data != send.data) {
        Pieces::Take(pieces.Of(own, t), static_cast<const char*>(piece.data));
      }
    }
    if (t == 0) continue;
    for (int rank = 0; rank < phases.ranks(); ++rank) {
      if (rank == phases.rank()) continue;
      Pieces::Take(pieces.Of(receive.Of(rank), t - 1), pieces.TakenFrom(rank));
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
      // None after the last.
      pieces.Put(pieces.Given(), pieces.Of(data, t), phases.ranks() - 1);
    } else if (t > 0) {
      Pieces::Take(pieces.Of(data, t - 1), pieces.TakenFrom(root));
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
