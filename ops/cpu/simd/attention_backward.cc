#include "ops/cpu/simd/attention_blocks.h"
#include "ops/cpu/simd/attention_pack.h"
#include "ops/cpu/simd/block_product.h"
#include "ops/cpu/simd/loops.h"

namespace troupe {
namespace TROUPE_SIMD {
namespace {

// With P the probabilities, D their dropout factors and dP = (dO V^T) o D:
//   dS = scale P o (dP - rowsum(dO o O)),  dV = (P o D)^T dO,
//   dQ = dS K,  dK = dS^T Q.
template <typename T>
struct Backward {
  int padded;                // head_dim
  int padded_v;              // value_dim
  Element<T>* q;             // [q_length, padded], to contract over columns
  Element<T>* d_o;           // [q_length, padded_v], the same
  Element<T>* q_columns;     // to contract over rows; f32: q
  Element<T>* d_o_columns;   // the same
  float* dq;                 // [q_length, padded]
  float* delta;              // [q_length]: rowsum(dO o O)
  Element<T>* k;             // [kKeys, padded], to contract over rows
  Element<T>* k_transposed;  // [head_dim, kKeys]
  Element<T>* v_transposed;  // [value_dim, kKeys]
  float* scores;             // [kQueries, kKeys]
  float* dp;                 // [kQueries, kKeys]: dO V^T
  Element<T>* p;             // [kQueries, kKeys]: P o D, to contract over rows
  Element<T>* ds;            // the same of dS
  Element<T>* ds_keys;       // dS, to contract over keys; f32: ds
};

template <typename T>
Backward<T> Lay(const RawAttention<T>& a) {
  Backward<T> b;
  b.padded = PaddedHeadDim(a.head_dim);
  b.padded_v = PaddedHeadDim(a.value_dim);
  const int64_t queries = RoundUp(a.q_length, kQueries);
  const int64_t of_queries = queries * b.padded;
  const int64_t of_results = queries * b.padded_v;
  const int64_t of_keys = int64_t{kKeys} * b.padded;
  b.dq = a.scratch;
  b.delta = b.dq + of_queries;
  b.scores = b.delta + queries;
  b.dp = b.scores + kQueries * kKeys;
  Element<T>* next = reinterpret_cast<Element<T>*>(b.dp + kQueries * kKeys);
  const auto take = [&next](int64_t numbers) {
    return (next += Elements<T>(numbers)) - Elements<T>(numbers);
  };
  constexpr bool kTwice = Contracted<T>::kWidth > 1;
  b.q = take(of_queries);
  b.d_o = take(of_results);
  b.q_columns = kTwice ? take(of_queries) : b.q;
  b.d_o_columns = kTwice ? take(of_results) : b.d_o;
  b.k = take(of_keys);
  b.k_transposed = take(of_keys);
  b.v_transposed = take(int64_t{kKeys} * b.padded_v);
  b.p = take(kQueries * kKeys);
  b.ds = take(kQueries * kKeys);
  b.ds_keys = kTwice ? take(kQueries * kKeys) : b.ds;
  return b;
}

// Results in blocks [kQueries, kKeys], a vector of two neighbouring rows at a
// time (`row` is even), to contract over rows and over keys. f32 is the same
// for both, so that rows are stored only; bf16 is pairs of rows in one and of
// keys in the other.
inline void StoreAlongRows(float* to, int row, int i, Vec first, Vec second) {
  Store(to + row * kKeys + i, first);
  Store(to + (row + 1) * kKeys + i, second);
}
inline void StoreAlongKeys(float*, int, int, Vec, Vec) {}
#if defined(__AVX512BF16__)
inline void StoreAlongRows(uint32_t* to, int row, int i, Vec first,
                           Vec second) {
  Store(to + row / 2 * kKeys + i, FactorPairs(first, second));
}
inline void StoreAlongKeys(uint32_t* to, int row, int i, Vec first,
                           Vec second) {
  uint16_t* const at = reinterpret_cast<uint16_t*>(to) + row * kKeys + i;
  StoreFactor(at, first);
  StoreFactor(at + kKeys, second);
}
#endif

// A row of the block: what its scores and dO V^T become gradients with.
struct Row {
  const float* scores;
  const float* dp;
  float logsumexp;  // times log2(e)
  float delta;
  const uint32_t* bits;  // its dropout numbers
};

// Row `row` of the block at (query, key) with what it does not see masked,
// unless `all` rows see all; a row beyond the block's `rows` sees nothing.
// `room` is for its dropout numbers.
template <typename T>
Row MaskedRow(const RawAttention<T>& a, const Backward<T>& b, int row, int rows,
              int64_t query, int64_t key, bool all, uint32_t* room) {
  float* const scores = b.scores + row * kKeys;
  float* const dp = b.dp + row * kKeys;
  const bool there = row < rows;
  const auto mask = [=](int begin, int end) {
    for (int i = begin; i < end; ++i) {
      scores[i] = -__builtin_inff();
      dp[i] = 0;
    }
  };
  if (!there) {
    mask(0, kKeys);
  } else if (!all) {
    mask(0, Hidden(a, query + row, key));
    mask(Visible(a, query + row, key), kKeys);
  }
  if (!there) {
    return {
        .scores = scores, .dp = dp, .logsumexp = 0, .delta = 0, .bits = room};
  }
  return {.scores = scores,
          .dp = dp,
          .logsumexp = a.logsumexp[query + row] * kLog2E,
          .delta = b.delta[query + row],
          .bits = a.dropout.threshold == 0
                      ? nullptr
                      : MaskBits(a, query + row, key, room)};
}

struct Gradients {
  Vec p;   // P o D
  Vec ds;  // dS
};

template <bool dropout, typename T>
Gradients OfRow(const RawAttention<T>& a, const Row& row, int i) {
  const Vec weight = Exp2(Load(row.scores + i) * Log2Scale(a) - row.logsumexp);
  const Vec dp = Load(row.dp + i);
  if (!dropout) return {weight, weight * (dp - row.delta) * a.scale};
  const Vec factor = DropoutFactor(a.dropout, row.bits + i);
  return {weight * factor, weight * (dp * factor - row.delta) * a.scale};
}

// The rows by twos, as pairs of bf16 are stored.
template <bool dropout, typename T>
void GradientRows(const RawAttention<T>& a, const Backward<T>& b, int rows,
                  int64_t query, int64_t key) {
  uint32_t room[2][kPhiloxRoom] = {};
  const bool all = AllVisible(a, query, rows, key);
  for (int r = 0; r < rows; r += 2) {
    const Row first = MaskedRow(a, b, r, rows, query, key, all, room[0]);
    const Row second = MaskedRow(a, b, r + 1, rows, query, key, all, room[1]);
    for (int i = 0; i < kKeys; i += kLanes) {
      const Gradients upper = OfRow<dropout>(a, first, i);
      const Gradients lower = OfRow<dropout>(a, second, i);
      StoreAlongRows(b.p, r, i, upper.p, lower.p);
      StoreAlongRows(b.ds, r, i, upper.ds, lower.ds);
      StoreAlongKeys(b.ds_keys, r, i, upper.ds, lower.ds);
    }
  }
}

template <typename T>
void BackwardBlock(const RawAttention<T>& a, const Backward<T>& b,
                   int64_t query, int rows, int64_t key, int keys) {
  // C [rows, kKeys] = A B^T, A of the queries, B of the keys, over `dim`
  // columns that are padded to `padded`.
  const auto scores = [&](const Element<T>* q, const Element<T>* k, int dim,
                          int padded, float* c) {
    BlockProduct<false>(
        Block<Element<T>>{.a = q + Elements<T>(query * padded),
                          .a_row = Elements<T>(padded),
                          .a_column = 1,
                          .b = k,
                          .b_row = kKeys,
                          .c = c,
                          .c_row = kKeys,
                          .m = rows,
                          .n = kKeys,
                          .k = static_cast<int>(Elements<T>(dim))});
  };
  scores(b.q, b.k_transposed, a.head_dim, b.padded, b.scores);
  scores(b.d_o, b.v_transposed, a.value_dim, b.padded_v, b.dp);
  if (a.dropout.threshold == 0) {
    GradientRows<false>(a, b, rows, query, key);
  } else {
    GradientRows<true>(a, b, rows, query, key);
  }
  // C [keys, padded] += A^T B, A of scores, B of the queries.
  const auto of_keys = [&](const Element<T>* p, const Element<T>* q, int padded,
                           float* c) {
    BlockProduct<true>(
        Block<Element<T>>{.a = p,
                          .a_row = 1,
                          .a_column = kKeys,
                          .b = q + Elements<T>(query * padded),
                          .b_row = padded,
                          .c = c + key * padded,
                          .c_row = padded,
                          .m = keys,
                          .n = padded,
                          .k = static_cast<int>(Elements<T>(rows))});
  };
  of_keys(b.p, b.d_o_columns, b.padded_v, a.dv_sum);
  of_keys(b.ds, b.q_columns, b.padded, a.dk_sum);
  BlockProduct<true>(
      Block<Element<T>>{.a = b.ds_keys,
                        .a_row = Elements<T>(kKeys),
                        .a_column = 1,
                        .b = b.k,
                        .b_row = b.padded,
                        .c = b.dq + query * b.padded,
                        .c_row = b.padded,
                        .m = rows,
                        .n = b.padded,
                        .k = static_cast<int>(Elements<T>(keys))});
}

// The queries [first, end); `first` is even.
template <typename T>
void PackQueries(const RawAttention<T>& a, const Backward<T>& b, int64_t first,
                 int64_t end) {
  const int64_t rows = end - first;
  const int64_t at = Elements<T>(first * b.padded);
  const int64_t at_o = Elements<T>(first * b.padded_v);
  const T* const q = a.q + first * a.q_stride;
  const T* const d_o = a.d_o + first * a.d_o_stride;
  PackRows(q, a.q_stride, rows, a.head_dim, b.padded, b.q + at);
  PackRows(d_o, a.d_o_stride, rows, a.value_dim, b.padded_v, b.d_o + at_o);
  if (b.q_columns != b.q) {
    PackColumns(q, a.q_stride, rows, a.head_dim, b.padded, b.q_columns + at);
    PackColumns(d_o, a.d_o_stride, rows, a.value_dim, b.padded_v,
                b.d_o_columns + at_o);
  }
  for (int64_t query = first; query < end; ++query) {
    const T* d_o = a.d_o + query * a.d_o_stride;
    const T* o = a.o + query * a.o_stride;
    PrefetchAhead(o, a.o_stride, a.value_dim);
    Vec sum{};
    ForEachVec(a.value_dim, [&](int64_t i, auto l) {
      sum += Load(d_o + i, l) * Load(o + i, l);
    });
    b.delta[query] = Sum(sum);
  }
}

}  // namespace

template <typename T>
void AttentionBackward(const RawAttention<T>& a) {
  const Backward<T> b = Lay(a);
  // Queries that see no key are left out by whole blocks.
  const int64_t packed =
      FirstThatSees(a.part, a.q_length, 0) / kQueries * kQueries;
  const int64_t behind =
      FirstBehind(a.part, a.q_length, a.documents, a.kv_length - 1);
  if (packed < behind) {
    PackQueries(a, b, packed, Least(RoundUp(behind, kQueries), a.q_length));
  }
  for (int64_t query = 0; query < a.q_length; ++query) {
    LoadBefore(a.result, query, a.head_dim, b.padded, b.dq + query * b.padded);
  }
  for (int64_t key = 0; key < a.kv_length; key += kKeys) {
    const int64_t first = FirstThatSees(a.part, a.q_length, key);
    if (first >= a.q_length) break;
    const int keys = static_cast<int>(Least(kKeys, a.kv_length - key));
    const int64_t end =
        FirstBehind(a.part, a.q_length, a.documents, key + keys - 1);
    if (first >= end) continue;
    const T* k = a.k + key * a.k_stride;
    PackColumns(k, a.k_stride, keys, a.head_dim, b.padded, b.k);
    PackTransposed(k, a.k_stride, keys, a.head_dim, b.k_transposed);
    PackTransposed(a.v + key * a.v_stride, a.v_stride, keys, a.value_dim,
                   b.v_transposed);
    for (int64_t query = first / kQueries * kQueries; query < end;
         query += kQueries) {
      const int rows = static_cast<int>(Least(kQueries, a.q_length - query));
      BackwardBlock(a, b, query, rows, key, keys);
    }
  }
  for (int64_t query = 0; query < a.q_length; ++query) {
    StoreResult(a.result, query, a.head_dim, b.dq + query * b.padded, 1.0f);
  }
}

template void AttentionBackward(const RawAttention<float>& a);
template void AttentionBackward(const RawAttention<uint16_t>& a);
template void AttentionBackward(const RawAttention<Fp16>& a);

}  // namespace TROUPE_SIMD
}  // namespace troupe
