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
  int padded;
  Element<T>* q;             // [q_length, padded], to contract over columns
  Element<T>* d_o;           // the same
  Element<T>* q_columns;     // to contract over rows; f32: q
  Element<T>* d_o_columns;   // the same
  float* dq;                 // [q_length, padded]
  float* delta;              // [q_length]: rowsum(dO o O)
  Element<T>* k;             // [kKeys, padded], to contract over rows
  Element<T>* k_transposed;  // [head_dim, kKeys]
  Element<T>* v_transposed;  // [head_dim, kKeys]
  float* p;                  // [kQueries, kKeys]: scores, then P o D
  float* ds;                 // [kQueries, kKeys]: dO V^T, then dS
  Element<T>* room[3];       // [kQueries, kKeys]
};

template <typename T>
Backward<T> Lay(const RawAttention<T>& a) {
  Backward<T> b;
  b.padded = PaddedHeadDim(a.head_dim);
  const int64_t of_queries = RoundUp(a.q_length, kQueries) * b.padded;
  const int64_t of_keys = int64_t{kKeys} * b.padded;
  b.dq = a.scratch;
  b.delta = b.dq + of_queries;
  b.p = b.delta + RoundUp(a.q_length, kQueries);
  b.ds = b.p + kQueries * kKeys;
  Element<T>* next = reinterpret_cast<Element<T>*>(b.ds + kQueries * kKeys);
  const auto take = [&next](int64_t numbers) {
    return (next += Elements<T>(numbers)) - Elements<T>(numbers);
  };
  constexpr bool kTwice = sizeof(T) < sizeof(float);
  b.q = take(of_queries);
  b.d_o = take(of_queries);
  b.q_columns = kTwice ? take(of_queries) : b.q;
  b.d_o_columns = kTwice ? take(of_queries) : b.d_o;
  b.k = take(of_keys);
  b.k_transposed = take(of_keys);
  b.v_transposed = take(of_keys);
  for (Element<T>*& room : b.room) room = take(kTwice ? kQueries * kKeys : 0);
  return b;
}

// Turns one row of scores and of dO V^T into P o D and dS.
template <typename T>
void GradientRow(const RawAttention<T>& a, const Backward<T>& b, int row,
                 int64_t query, int64_t key) {
  float* p = b.p + row * kKeys;
  float* ds = b.ds + row * kKeys;
  const int visible = Visible(a, query, key);
  for (int i = visible; i < kKeys; ++i) p[i] = -__builtin_inff();
  const float logsumexp = a.logsumexp[query];
  const float delta = b.delta[query];
  if (a.dropout.threshold == 0) {
    for (int i = 0; i < kKeys; i += kLanes) {
      const Vec weight = Exp(Load(p + i) * a.scale - logsumexp);
      Store(p + i, weight);
      Store(ds + i, weight * (Load(ds + i) - delta) * a.scale);
    }
    return;
  }
  uint32_t room[kPhiloxRoom];
  const uint32_t* bits = MaskBits(a, query, key, room);
  for (int i = 0; i < kKeys; i += kLanes) {
    const Vec weight = Exp(Load(p + i) * a.scale - logsumexp);
    const Vec factor = DropoutFactor(a.dropout, bits + i);
    Store(p + i, weight * factor);
    Store(ds + i, weight * (Load(ds + i) * factor - delta) * a.scale);
  }
}

template <typename T>
void BackwardBlock(const RawAttention<T>& a, const Backward<T>& b,
                   int64_t query, int rows, int64_t key, int keys) {
  const int64_t at = Elements<T>(query * b.padded);
  // C [rows, kKeys] = A B^T, A of the queries, B of the keys.
  const auto scores = [&](const Element<T>* q, const Element<T>* k, float* c) {
    BlockProduct<false>(
        Block<Element<T>>{.a = q + at,
                          .a_row = Elements<T>(b.padded),
                          .a_column = 1,
                          .b = k,
                          .b_row = kKeys,
                          .c = c,
                          .c_row = kKeys,
                          .m = rows,
                          .n = kKeys,
                          .k = static_cast<int>(Elements<T>(a.head_dim))});
  };
  scores(b.q, b.k_transposed, b.p);
  scores(b.d_o, b.v_transposed, b.ds);
  for (int r = 0; r < rows; ++r) GradientRow(a, b, r, query + r, key);
  // C [keys, padded] += A^T B, A of scores, B of the queries.
  const auto of_keys = [&](const Element<T>* p, const Element<T>* q, float* c) {
    BlockProduct<true>(
        Block<Element<T>>{.a = p,
                          .a_row = 1,
                          .a_column = kKeys,
                          .b = q + at,
                          .b_row = b.padded,
                          .c = c + key * b.padded,
                          .c_row = b.padded,
                          .m = keys,
                          .n = b.padded,
                          .k = static_cast<int>(Elements<T>(rows))});
  };
  of_keys(AlongRows(b.p, rows, b.room[0]), b.d_o_columns, a.dv_sum);
  of_keys(AlongRows(b.ds, rows, b.room[1]), b.q_columns, a.dk_sum);
  BlockProduct<true>(
      Block<Element<T>>{.a = AlongKeys(b.ds, rows, b.room[2]),
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

template <typename T>
void PackQueries(const RawAttention<T>& a, const Backward<T>& b) {
  const int64_t rows = a.q_length;
  PackRows(a.q, a.q_stride, rows, a.head_dim, b.padded, b.q);
  PackRows(a.d_o, a.d_o_stride, rows, a.head_dim, b.padded, b.d_o);
  if (b.q_columns != b.q) {
    PackColumns(a.q, a.q_stride, rows, a.head_dim, b.padded, b.q_columns);
    PackColumns(a.d_o, a.d_o_stride, rows, a.head_dim, b.padded, b.d_o_columns);
  }
  for (int64_t i = 0; i < rows * b.padded; i += kLanes) {
    Store(b.dq + i, Vec{});
  }
  for (int64_t query = 0; query < a.q_length; ++query) {
    const T* d_o = a.d_o + query * a.d_o_stride;
    const T* o = a.o + query * a.o_stride;
    Vec sum{};
    ForEachVec(a.head_dim, [&](int64_t i, auto l) {
      sum += Load(d_o + i, l) * Load(o + i, l);
    });
    b.delta[query] = Sum(sum);
  }
}

}  // namespace

template <typename T>
void AttentionBackward(const RawAttention<T>& a) {
  const Backward<T> b = Lay(a);
  PackQueries(a, b);
  for (int64_t key = 0; key < a.kv_length; key += kKeys) {
    const int keys = static_cast<int>(Least(kKeys, a.kv_length - key));
    const T* k = a.k + key * a.k_stride;
    PackColumns(k, a.k_stride, keys, a.head_dim, b.padded, b.k);
    PackTransposed(k, a.k_stride, keys, a.head_dim, b.k_transposed);
    PackTransposed(a.v + key * a.v_stride, a.v_stride, keys, a.head_dim,
                   b.v_transposed);
    for (int64_t query = 0; query < a.q_length; query += kQueries) {
      const int rows = static_cast<int>(Least(kQueries, a.q_length - query));
      if (Visible(a, query + rows - 1, key) == 0) continue;
      BackwardBlock(a, b, query, rows, key, keys);
    }
  }
  for (int64_t query = 0; query < a.q_length; ++query) {
    ForEachVec(a.head_dim, [&](int64_t i, auto l) {
      Store(a.dq + query * a.dq_stride + i, Load(b.dq + query * b.padded + i),
            l);
    });
  }
}

template void AttentionBackward(const RawAttention<float>& a);
template void AttentionBackward(const RawAttention<uint16_t>& a);

}  // namespace TROUPE_SIMD
}  // namespace troupe
