#include "ops/cpu/simd/attention_blocks.h"
#include "ops/cpu/simd/attention_pack.h"
#include "ops/cpu/simd/block_product.h"
#include "ops/cpu/simd/factors.h"
#include "ops/cpu/simd/loops.h"

namespace troupe {
namespace TROUPE_SIMD {
namespace {

// Where things lie in the scratch memory.
template <typename T>
struct Forward {
  int padded;                // head_dim
  int padded_v;              // value_dim
  Element<T>* k_transposed;  // by block of keys: [head_dim, kKeys]
  Element<T>* v;             // [kv_length, padded_v], to contract over keys
  Element<T>* q;             // [kQueries, padded]
  float* o;                 // [kQueries, padded_v], before division by the sums
  float* scores;            // [kQueries, kKeys]
  Factor<T>* p;             // [kQueries, kKeys]: probabilities; f32: scores
  float largest[kQueries];  // score of a row, times scale and log2(e)
  float sum[kQueries][kLanes];  // of its exponentials, by lane
};

template <typename T>
Forward<T> Lay(const RawAttention<T>& a) {
  Forward<T> f;
  f.padded = PaddedHeadDim(a.head_dim);
  f.padded_v = PaddedHeadDim(a.value_dim);
  const int64_t keys = RoundUp(a.kv_length, kKeys);
  f.k_transposed = reinterpret_cast<Element<T>*>(a.scratch);
  f.v = f.k_transposed + Elements<T>(keys * f.padded);
  f.q = f.v + Elements<T>(keys * f.padded_v);
  f.o = reinterpret_cast<float*>(f.q + Elements<T>(kQueries * f.padded));
  f.scores = f.o + kQueries * f.padded_v;
  constexpr bool kInPlace = sizeof(Factor<T>) == sizeof(float);
  f.p = reinterpret_cast<Factor<T>*>(kInPlace ? f.scores
                                              : f.scores + kQueries * kKeys);
  return f;
}

// The largest score of a row that has met none: finite, and what was gathered
// under it is gone with the first that comes.
constexpr float kNone = -__FLT_MAX__;

// The scores of one row, those it does not see -inf; returns the largest.
template <typename T>
float MaskRow(const RawAttention<T>& a, Forward<T>& f, int row, int hidden,
              int visible) {
  float* scores = f.scores + row * kKeys;
  for (int i = 0; i < hidden; ++i) scores[i] = -__builtin_inff();
  for (int i = visible; i < kKeys; ++i) scores[i] = -__builtin_inff();
  Vec top = Load(scores);
  for (int i = kLanes; i < kKeys; i += kLanes) top = Max(top, Load(scores + i));
  return MaxLane(top) * Log2Scale(a);
}

// Scores of one row become unnormalised probabilities exp(score - largest).
template <typename T>
void ExpRow(const RawAttention<T>& a, Forward<T>& f, int row, int64_t query,
            int64_t key) {
  const float* scores = f.scores + row * kKeys;
  Factor<T>* probabilities = f.p + row * kKeys;
  const float scale = Log2Scale(a);
  const float largest = f.largest[row];
  Vec sum = Load(f.sum[row]);
  if (a.dropout.threshold == 0) {
    for (int i = 0; i < kKeys; i += kLanes) {
      const Vec p = Exp2(Load(scores + i) * scale - largest);
      sum += p;
      StoreFactor(probabilities + i, p);
    }
  } else {
    uint32_t room[kPhiloxRoom];
    const uint32_t* bits = MaskBits(a, query, key, room);
    for (int i = 0; i < kKeys; i += kLanes) {
      const Vec p = Exp2(Load(scores + i) * scale - largest);
      sum += p;
      StoreFactor(probabilities + i, p * DropoutFactor(a.dropout, bits + i));
    }
  }
  Store(f.sum[row], sum);
}

// What was gathered under smaller largest scores is scaled down to those that
// `largest` brings, of all rows at once.
template <typename T>
void OnlineSoftmax(const RawAttention<T>& a, Forward<T>& f, int rows,
                   int64_t query, int64_t key) {
  float largest[kQueries];
  float shrink[kQueries];
  const bool all = AllVisible(a, query, rows, key);
  for (int r = 0; r < rows; ++r) {
    largest[r] = all ? MaskRow(a, f, r, 0, kKeys)
                     : MaskRow(a, f, r, Hidden(a, query + r, key),
                               Visible(a, query + r, key));
  }
  for (int r = rows; r < kQueries; ++r) largest[r] = 0;
  for (int r = 0; r < kQueries; r += kLanes) {
    const Vec before = Load(f.largest + r);
    const Vec now = Max(before, Load(largest + r));
    Store(f.largest + r, now);
    Store(shrink + r, Exp2(before - now));
  }
  for (int r = 0; r < rows; ++r) {
    if (shrink[r] != 1.0f) {
      Store(f.sum[r], Load(f.sum[r]) * shrink[r]);
      float* o = f.o + r * f.padded_v;
      for (int d = 0; d < f.padded_v; d += kLanes) {
        Store(o + d, Load(o + d) * shrink[r]);
      }
    }
    ExpRow(a, f, r, query + r, key);
  }
}

// The softmax of a block of queries before the first key of this call: what it
// was after the last one of earlier calls, o their sum under the weight 1 of
// their logsumexp.
template <typename T>
void BeginBlock(const RawAttention<T>& a, Forward<T>& f, int64_t query,
                int rows) {
  for (int r = 0; r < kQueries; ++r) {
    f.largest[r] = kNone;
    Store(f.sum[r], Vec{});
  }
  for (int r = 0; r < rows; ++r) {
    LoadBefore(a.result, query + r, a.value_dim, f.padded_v,
               f.o + r * f.padded_v);
    if (!a.result.before) continue;
    const float logsumexp = a.logsumexp[query + r] * kLog2E;
    if (logsumexp < kNone) continue;  // of no keys
    f.largest[r] = logsumexp;
    f.sum[r][0] = 1.0f;
  }
}

template <typename T>
void EndBlock(const RawAttention<T>& a, const Forward<T>& f, int64_t query,
              int rows) {
  for (int r = 0; r < rows; ++r) {
    const float sum = Sum(Load(f.sum[r]));
    StoreResult(a.result, query + r, a.value_dim, f.o + r * f.padded_v,
                sum == 0 ? 0 : 1.0f / sum);
    const bool as_before =
        a.result.before && Seen(a, query + r) <= FirstSeen(a, query + r);
    if (a.logsumexp && !as_before) {
      a.logsumexp[query + r] = LogSumExp(f.largest[r], sum);
    }
  }
}

// Where the first block begins of the first `keys` keys of which a query, or
// any after it, sees some; `keys` where there is none.
template <typename T>
int64_t FirstBlock(const RawAttention<T>& a, int64_t query, int64_t keys) {
  const int64_t first = FirstSeen(a, query);
  return first >= keys ? keys : first / kKeys * kKeys;
}

template <typename T>
void ForwardBlock(const RawAttention<T>& a, Forward<T>& f, int64_t query,
                  int rows) {
  PackRows(a.q + query * a.q_stride, a.q_stride, rows, a.head_dim, f.padded,
           f.q);
  BeginBlock(a, f, query, rows);
  const int64_t keys = Seen(a, query + rows - 1);
  for (int64_t key = FirstBlock(a, query, keys); key < keys; key += kKeys) {
    BlockProduct<false>(
        Block<Element<T>>{.a = f.q,
                          .a_row = Elements<T>(f.padded),
                          .a_column = 1,
                          .b = f.k_transposed + Elements<T>(key * f.padded),
                          .b_row = kKeys,
                          .c = f.scores,
                          .c_row = kKeys,
                          .m = rows,
                          .n = kKeys,
                          .k = static_cast<int>(Elements<T>(a.head_dim))});
    OnlineSoftmax(a, f, rows, query, key);
    const int64_t visible = Least(keys - key, kKeys);
    BlockProduct<true>(
        Block<Element<T>>{.a = reinterpret_cast<const Element<T>*>(f.p),
                          .a_row = Elements<T>(kKeys),
                          .a_column = 1,
                          .b = f.v + Elements<T>(key * f.padded_v),
                          .b_row = f.padded_v,
                          .c = f.o,
                          .c_row = f.padded_v,
                          .m = rows,
                          .n = f.padded_v,
                          .k = static_cast<int>(Elements<T>(visible))});
  }
  EndBlock(a, f, query, rows);
}

}  // namespace

int PaddedHeadDim(int head_dim) {
  return static_cast<int>(RoundUp(head_dim, kLanes));
}

int64_t AttentionScratch(int64_t q_length, int64_t kv_length, int head_dim,
                         int value_dim, bool backward) {
  const int64_t padded = PaddedHeadDim(head_dim);
  const int64_t padded_v = PaddedHeadDim(value_dim);
  const int64_t both = padded + padded_v;
  const int64_t blocks = 4 * kQueries * kKeys + kQueries * both;
  if (!backward) return RoundUp(kv_length, kKeys) * both + blocks;
  return RoundUp(q_length, kQueries) * (both + padded + 3) +
         kKeys * (both + padded) + blocks;
}

template <typename T>
void Attention(const RawAttention<T>& a) {
  if (IsOfFew(a)) return AttentionOfFew(a);
  // Neither keys that the last query does not see are of use, nor queries that
  // see none, unless what they have must go elsewhere.
  const int64_t keys = Seen(a, a.q_end - 1);
  int64_t begin = a.q_begin;
  int64_t end = a.q_end;
  if (InPlace(a.result)) {
    const int64_t first = FirstThatSees(a.part, a.q_length, 0);
    begin = begin > first ? begin : first;
    end = Least(end,
                FirstBehind(a.part, a.q_length, a.documents, a.kv_length - 1));
    if (begin >= end) return;
  }
  Forward<T> f = Lay(a);
  const int64_t first_key = FirstBlock(a, begin, keys);
  for (int64_t key = first_key; key < keys; key += kKeys) {
    PackTransposed(a.k + key * a.k_stride, a.k_stride,
                   static_cast<int>(Least(kKeys, keys - key)), a.head_dim,
                   f.k_transposed + Elements<T>(key * f.padded));
  }
  if (first_key < keys) {
    PackColumns(a.v + first_key * a.v_stride, a.v_stride, keys - first_key,
                a.value_dim, f.padded_v,
                f.v + Elements<T>(first_key * f.padded_v));
  }
  for (int head = 0; head < a.heads; ++head) {
    const RawAttention<T> one = OneHead(a, head);
    for (int64_t query = begin; query < end; query += kQueries) {
      ForwardBlock(one, f, query,
                   static_cast<int>(Least(kQueries, end - query)));
    }
  }
}

template void Attention(const RawAttention<float>& a);
template void Attention(const RawAttention<uint16_t>& a);
template void Attention(const RawAttention<Fp16>& a);

}  // namespace TROUPE_SIMD
}  // namespace troupe
