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

// How many of a call's keys, the first of them, its query `query` sees.
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

// Documents of one sequence: for each position of it, the position of the first
// token of its document, which never falls. Null: the sequence is one document.
// A query then sees no key before its document: of a call's keys, those from
// FirstKeySeen to KeysSeen, none where the first is not below the second.
static constexpr int64_t FirstKeySeen(const AttentionPart& part,
                                      int64_t kv_length,
                                      const int32_t* documents, int64_t query) {
  if (documents == nullptr) return 0;
  return RowsBefore(part.keys, kv_length,
                    documents[PositionOf(part.queries, query)]);
}

// The first of a call's queries whose document begins behind key `key`: neither
// it nor any after it sees the key. q_length where there is none.
static constexpr int64_t FirstBehind(const AttentionPart& part,
                                     int64_t q_length, const int32_t* documents,
                                     int64_t key) {
  if (documents == nullptr) return q_length;
  const int64_t position = PositionOf(part.keys, key);
  int64_t begin = 0, end = q_length;
  while (begin < end) {
    const int64_t middle = begin + (end - begin) / 2;
    if (documents[PositionOf(part.queries, middle)] > position) {
      end = middle;
    } else {
      begin = middle + 1;
    }
  }
  return begin;
}

}  // namespace troupe

#endif  // TROUPE_OPS_ATTENTION_PART_H_
