// The head's logits, its loss and their backward passes for some rows at a time
// (memory.loss_chunk_tokens): [tokens, vocabulary] is never whole. Nothing else
// of a model depends on all logits at once: the loss is a sum over rows, and so
// is the gradient of the head's weight.
//
//   whole      x -LINEAR-> logits -CROSS_ENTROPY
//   in chunks  x -LINEAR-> logits 0 -CROSS_ENTROPY    rows [0, n)
//              x -LINEAR-> logits 1 -CROSS_ENTROPY    rows [n, 2 n) ...
//
// Where ranks have some columns of the vocabulary each, each chunk has parts of
// the softmax of its own, with their exchange. Everything else follows from
// Op.chunk: segments (proto/plan/segments.h), the one place that chunks share
// (proto/plan/place_values.h), their order (scheduler/passes/expand_order.h).
#ifndef TROUPE_SCHEDULER_TIERS_LOSS_CHUNKS_H_
#define TROUPE_SCHEDULER_TIERS_LOSS_CHUNKS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "proto/plan/unit_list.h"

namespace troupe {

inline constexpr char kLossChunksField[] = "memory.loss_chunk_tokens";

// Rows of one chunk: all positions of some samples, or some of one sample.
struct ChunkShape {
  int64_t samples = 0;
  int64_t positions = 0;
  int64_t rows() const { return samples * positions; }
};

// Those of [samples, positions], each of at most rows_max rows and as even as
// can be. One where all are no more.
std::vector<ChunkShape> ChunksOf(const ChunkShape& all, int64_t rows_max);

// Rewrites the tables that have a loss, once they are cut over ranks. 0 rows:
// nothing. Bytes and work are to be derived again (UnitList::Derive).
// InvalidArgument, beginning with the field, where ranks exchange the logits
// themselves.
absl::Status ChunkLoss(int64_t rows_max, UnitList& units);

// The sizes that `memory: auto` and advice try, the largest first. Each chunk
// adds to all of the weight's gradient, which is 8 bytes of an element for
// 2 x rows flops: with fewer rows a CPU begins to notice.
std::vector<int64_t> TriedLossChunks();

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_TIERS_LOSS_CHUNKS_H_
