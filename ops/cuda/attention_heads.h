// What the kernels of attention are told: where the heads lie, and what becomes
// of a score.
#ifndef TROUPE_OPS_CUDA_ATTENTION_HEADS_H_
#define TROUPE_OPS_CUDA_ATTENTION_HEADS_H_

#include <cstdint>

#include "ops/attention_part.h"
#include "ops/cuda/attention_tile.h"
#include "proto/base/philox.h"

namespace troupe::cuda {

// Exponents are of 2: log2(e) is part of the scale.
constexpr float kLog2E = 1.4426950408889634f;
constexpr float kLn2 = 0.6931471805599453f;

// A tensor [batch, length, heads * head_dim].
template <typename T>
struct HeadsOf {
  T* data;
  int64_t sample_stride;
  int64_t row_stride;
  int length;
  bool vectors;  // as HeadRows

  __device__ HeadRows<T> From(int sample, int head, int head_dim,
                              int row) const {
    return {data + sample * sample_stride + int64_t{head} * head_dim +
                row * row_stride,
            row_stride, length - row, head_dim, vectors};
  }
};

// A result: in T or, where calls add it up, in f32; and what earlier calls have
// found of it.
template <typename T>
struct ResultOfHeads {
  HeadsOf<T> rounded;  // without data: `whole` instead
  HeadsOf<float> whole;
  HeadsOf<const float> before;  // without data: nothing
};

// The mask of ops/attention.h; a threshold of 0 keeps all.
struct DropoutOfHeads {
  PhiloxStream stream;
  uint32_t threshold;  // kept: the upper 24 bits are not below it
  float keep_scale;    // what is kept is multiplied by it; 1 without dropout
  int64_t first_head;  // the number of head 0 of sample 0 among all
  int64_t total_heads;
};

template <typename T>
struct RawAttention {
  HeadsOf<const T> q, k, v;
  ResultOfHeads<T> result;  // o, in the backward dq
  HeadsOf<const T> o, d_o;  // here and below: of the backward
  ResultOfHeads<T> dk, dv;
  float* logsumexp;  // [batch, heads, q_length]; may be null
  float* delta;      // [batch, heads, q_length]: rowsum(dO o O)
  int batch;
  int heads;
  int kv_heads;
  int head_dim;
  float scale;
  AttentionPart part;
  DropoutOfHeads dropout;

  __host__ __device__ int q_length() const { return q.length; }
  __host__ __device__ int kv_length() const { return k.length; }
  // How many of the keys a query sees; the first query that sees a key.
  __host__ __device__ int Seen(int query) const {
    return static_cast<int>(KeysSeen(part, k.length, query));
  }
  __device__ int FirstQuery(int key) const {
    return static_cast<int>(FirstThatSees(part, q.length, key));
  }
  // How many of the keys some query sees of the tile of `rows` from `query` on.
  __device__ int SeenByTile(int query, int rows) const {
    return Seen(min(query + rows, q.length) - 1);
  }
  __device__ int64_t RowOf(int sample, int head, int query) const {
    return (int64_t{sample} * heads + head) * q.length + query;
  }
};

// Which elements of kQueries by kKeys dropout keeps, a bit each, in shared
// memory. Philox makes four numbers at once, for neighbouring keys; so the
// block's threads draw the mask together, each block of numbers once, rather
// than each its own elements.
template <int kQueries, int kKeys>
struct DropoutTile {
  static constexpr int kBits = kKeys < 32 ? kKeys : 32;  // of a word
  static constexpr int kRowWords = kKeys / kBits;
  static constexpr int kBytes = kQueries * kRowWords * sizeof(uint32_t);

  uint32_t* words;

  __device__ bool Keeps(int query, int key) const {
    return words[query * kRowWords + key / kBits] >> (key % kBits) & 1;
  }

  // Of the queries and keys from here on. Others see it after a barrier.
  template <int kThreads, typename T>
  __device__ void Draw(const RawAttention<T>& a, int sample, int head,
                       int query, int key) const {
    const int64_t number =
        sample * a.dropout.total_heads + a.dropout.first_head + head;
    for (int i = threadIdx.x; i < kQueries * kRowWords; i += kThreads) {
      const int64_t row = number * a.part.length +
                          PositionOf(a.part.queries, query + i / kRowWords);
      words[i] = Word(a.dropout, row * a.part.length, a.part.keys,
                      key + i % kRowWords * kBits);
    }
  }

  // Of the keys from `key` on, which may lie in two runs of positions; `row` is
  // the element of position 0.
  static __device__ uint32_t Word(const DropoutOfHeads& dropout, uint64_t row,
                                  const SequenceRows& keys, int key) {
    const uint32_t word = Word(dropout, row + PositionOf(keys, key));
    const int64_t in_first = keys.first_count - key;
    if (in_first <= 0 || in_first >= kBits) return word;
    const uint32_t second = Word(dropout, row + keys.second) << in_first;
    return second | (word & ((uint32_t{1} << in_first) - 1));
  }

  // Of the elements from `first` on.
  static __device__ uint32_t Word(const DropoutOfHeads& dropout,
                                  uint64_t first) {
    const int skip = static_cast<int>(first % 4);
    uint64_t kept = 0;
    for (int at = 0; at < skip + kBits; at += 4) {
      const std::array<uint32_t, 4> numbers =
          PhiloxBlock(dropout.stream, (first + at) / 4);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const uint64_t keep = numbers[i] >> 8 >= dropout.threshold;
        kept |= keep << (at + i);
      }
    }
    return static_cast<uint32_t>(kept >> skip);
  }
};

}  // namespace troupe::cuda

#endif  // TROUPE_OPS_CUDA_ATTENTION_HEADS_H_
