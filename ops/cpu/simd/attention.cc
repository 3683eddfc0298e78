#include "ops/cpu/simd/attention_blocks.h"
#include "ops/cpu/simd/block_product.h"
#include "ops/cpu/simd/loops.h"

namespace troupe {
namespace TROUPE_SIMD {
namespace {

// Where things lie in the scratch memory.
struct Forward {
  int padded;
  float* k_transposed;  // by block of keys: [head_dim, kKeys]
  float* v;             // [kv_length, padded]
  float* q;             // [kQueries, padded], scaled
  float* o;             // [kQueries, padded], before division by the sums
  float* scores;        // [kQueries, kKeys], then probabilities
  float largest[kQueries];
  float sum[kQueries];
};

template <typename T>
Forward Lay(const RawAttention<T>& a) {
  Forward f;
  f.padded = PaddedHeadDim(a.head_dim);
  f.k_transposed = a.scratch;
  f.v = f.k_transposed + RoundUp(a.kv_length, kKeys) * f.padded;
  f.q = f.v + RoundUp(a.kv_length, kKeys) * f.padded;
  f.o = f.q + kQueries * f.padded;
  f.scores = f.o + kQueries * f.padded;
  return f;
}

// One row of scores becomes unnormalised probabilities exp(score - largest);
// what was gathered under a smaller `largest` is scaled down.
template <typename T>
void OnlineSoftmax(const RawAttention<T>& a, Forward& f, int row, int64_t query,
                   int64_t key) {
  float* scores = f.scores + row * kKeys;
  const int visible = Visible(a, query, key);
  for (int i = visible; i < kKeys; ++i) scores[i] = -__builtin_inff();
  Vec top = Load(scores);
  for (int i = kLanes; i < kKeys; i += kLanes) top = Max(top, Load(scores + i));
  const float block_largest = MaxLane(top);
  float largest = f.largest[row];
  if (block_largest > largest) {
    const float shrink =
        static_cast<float>(__builtin_exp(double{largest} - block_largest));
    largest = f.largest[row] = block_largest;
    f.sum[row] *= shrink;
    float* o = f.o + row * f.padded;
    for (int d = 0; d < f.padded; d += kLanes)
      Store(o + d, Load(o + d) * shrink);
  }
  Vec sum{};
  if (a.dropout.threshold == 0) {
    for (int i = 0; i < kKeys; i += kLanes) {
      const Vec p = Exp(Load(scores + i) - largest);
      sum += p;
      Store(scores + i, p);
    }
  } else {
    uint32_t room[kPhiloxRoom];
    const uint32_t* bits = MaskBits(a, query, key, room);
    for (int i = 0; i < kKeys; i += kLanes) {
      const Vec p = Exp(Load(scores + i) - largest);
      sum += p;
      Store(scores + i, p * DropoutFactor(a.dropout, bits + i));
    }
  }
  f.sum[row] += Sum(sum);
}

template <typename T>
void ForwardBlock(const RawAttention<T>& a, Forward& f, int64_t query,
                  int rows) {
  PackRows(a.q + query * a.q_stride, a.q_stride, rows, a.head_dim, f.padded,
           a.scale, f.q);
  for (int i = 0; i < rows * f.padded; i += kLanes) Store(f.o + i, Vec{});
  for (int r = 0; r < rows; ++r) {
    f.largest[r] = -__builtin_inff();
    f.sum[r] = 0;
  }
  for (int64_t key = 0; Visible(a, query + rows - 1, key) > 0; key += kKeys) {
    BlockProduct<false>({.a = f.q,
                         .a_row = f.padded,
                         .a_column = 1,
                         .b = f.k_transposed + key * f.padded,
                         .b_row = kKeys,
                         .c = f.scores,
                         .c_row = kKeys,
                         .m = rows,
                         .n = kKeys,
                         .k = a.head_dim});
    for (int r = 0; r < rows; ++r) OnlineSoftmax(a, f, r, query + r, key);
    BlockProduct<true>({.a = f.scores,
                        .a_row = kKeys,
                        .a_column = 1,
                        .b = f.v + key * f.padded,
                        .b_row = f.padded,
                        .c = f.o,
                        .c_row = f.padded,
                        .m = rows,
                        .n = f.padded,
                        .k = Visible(a, query + rows - 1, key)});
  }
  for (int r = 0; r < rows; ++r) {
    const float inverse = 1.0f / f.sum[r];
    T* o = a.o + (query + r) * a.o_stride;
    ForEachVec(a.head_dim, [&](int64_t i, auto l) {
      Store(o + i, Load(f.o + r * f.padded + i) * inverse, l);
    });
    if (a.logsumexp) {
      a.logsumexp[query + r] =
          static_cast<float>(f.largest[r] + __builtin_log(double{f.sum[r]}));
    }
  }
}

template <typename T>
RawAttention<T> OneHead(const RawAttention<T>& a, int head) {
  RawAttention<T> one = a;
  one.q += head * a.head_dim;
  one.o += head * a.head_dim;
  if (a.logsumexp) one.logsumexp += head * a.q_length;
  one.dropout.first_element +=
      static_cast<uint64_t>(head) * a.q_length * a.kv_length;
  return one;
}

}  // namespace

int PaddedHeadDim(int head_dim) {
  return static_cast<int>(RoundUp(head_dim, kLanes));
}

int64_t AttentionScratch(int64_t q_length, int64_t kv_length, int head_dim,
                         bool backward) {
  const int64_t padded = PaddedHeadDim(head_dim);
  const int64_t blocks = 2 * kQueries * kKeys + 2 * kQueries * padded;
  if (!backward) return 2 * RoundUp(kv_length, kKeys) * padded + blocks;
  return 3 * RoundUp(q_length, kQueries) * (padded + 1) + 3 * kKeys * padded +
         blocks;
}

template <typename T>
void Attention(const RawAttention<T>& a) {
  Forward f = Lay(a);
  // Keys beyond what the last query sees are of no use.
  const int64_t keys = a.q_end + (a.kv_length - a.q_length);
  for (int64_t key = 0; key < keys; key += kKeys) {
    PackTransposed(a.k + key * a.k_stride, a.k_stride,
                   static_cast<int>(Least(kKeys, keys - key)), a.head_dim,
                   f.k_transposed + key * f.padded);
  }
  PackRows(a.v, a.v_stride, keys, a.head_dim, f.padded, 1.0f, f.v);
  for (int head = 0; head < a.heads; ++head) {
    const RawAttention<T> one = OneHead(a, head);
    for (int64_t query = a.q_begin; query < a.q_end; query += kQueries) {
      ForwardBlock(one, f, query,
                   static_cast<int>(Least(kQueries, a.q_end - query)));
    }
  }
}

template void Attention(const RawAttention<float>& a);
template void Attention(const RawAttention<uint16_t>& a);

}  // namespace TROUPE_SIMD
}  // namespace troupe
