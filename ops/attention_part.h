// Where the queries and keys of one call of attention stand in a sequence whose
// other keys are elsewhere, and what follows from it: which keys a query sees.
// The kernels of every device read this, those of ops/cpu/simd too, so it stays
// plain, and its functions are each source's own.
#ifndef TROUPE_OPS_ATTENTION_PART_H_
#define TROUPE_OPS_ATTENTION_PART_H_

#include <stdint.h>

namespace troupe {

// The positions of some rows, which are in the order of their positions: a run
// of neighbours or, after `first_count` rows, a second one further on. In
// zigzag order each of n ranks has two runs, the r-th and the r-th last of 2 n
// pieces, so that a causal mask gives all ranks the same work.
struct SequenceRows {
  int64_t first = 0;                // position of row 0
  int64_t first_count = INT64_MAX;  // rows of the first run; more: all
  int64_t second = 0;               // position of row `first_count`
};

// A query sees the keys at its own position and before.
struct AttentionPart {
  int64_t length = 0;  // of the whole sequence; 0: the call has all keys, and
                       // its queries are at the last positions
  SequenceRows queries;
  SequenceRows keys;
};

static constexpr int64_t PositionOf(const SequenceRows& rows, int64_t row) {
  return row < rows.first_count ? rows.first + row
                                : rows.second + (row - rows.first_count);
}

// How many of the rows [0, count) are before a position.
static constexpr int64_t RowsBefore(const SequenceRows& rows, int64_t count,
                                    int64_t position) {
  const bool in_second = rows.first_count < count && position > rows.second;
  const int64_t before = in_second ? position - rows.second + rows.first_count
                                   : position - rows.first;
  const int64_t most =
      in_second || rows.first_count > count ? count : rows.first_count;
  return before < 0 ? 0 : before < most ? before : most;
}

// How many of a call's keys its query `query` sees: the first so many.
static constexpr int64_t KeysSeen(const AttentionPart& part, int64_t kv_length,
                                  int64_t query) {
  return RowsBefore(part.keys, kv_length, PositionOf(part.queries, query) + 1);
}

// The first of a call's queries that sees key `key`, and so do all after it;
// q_length where there is none.
static constexpr int64_t FirstThatSees(const AttentionPart& part,
                                       int64_t q_length, int64_t key) {
  return RowsBefore(part.queries, q_length, PositionOf(part.keys, key));
}

}  // namespace troupe

#endif  // TROUPE_OPS_ATTENTION_PART_H_
