#include "ops/cpu/simd/attention_blocks.h"
#include "ops/cpu/simd/block_product.h"
#include "ops/cpu/simd/loops.h"

namespace troupe {
namespace TROUPE_SIMD {
namespace {

// With P the probabilities, D their dropout factors and dP = (dO V^T) o D:
//   dS = P o (dP - rowsum(dO o O)),  dV = (P o D)^T dO,
//   dQ = scale dS K,  dK = dS^T (scale Q).
struct Backward {
  int padded;
  float* q;             // [q_length, padded], scaled
  float* d_o;           // [q_length, padded]
  float* dq;            // [q_length, padded], before the scale
  float* delta;         // [q_length]: rowsum(dO o O)
  float* k;             // [kKeys, padded]
  float* k_transposed;  // [head_dim, kKeys]
  float* v_transposed;  // [head_dim, kKeys]
  float* p;             // [kQueries, kKeys]: scores, then P o D
  float* ds;            // [kQueries, kKeys]: dO V^T, then dS
};

template <typename T>
Backward Lay(const RawAttention<T>& a) {
  Backward b;
  const int64_t rows = RoundUp(a.q_length, kQueries);
  b.padded = PaddedHeadDim(a.head_dim);
  b.q = a.scratch;
  b.d_o = b.q + rows * b.padded;
  b.dq = b.d_o + rows * b.padded;
  b.delta = b.dq + rows * b.padded;
  b.k = b.delta + rows;
  b.k_transposed = b.k + kKeys * b.padded;
  b.v_transposed = b.k_transposed + kKeys * b.padded;
  b.p = b.v_transposed + kKeys * b.padded;
  b.ds = b.p + kQueries * kKeys;
  return b;
}

// Turns one row of scores and of dO V^T into P o D and dS.
template <typename T>
void GradientRow(const RawAttention<T>& a, const Backward& b, int row,
                 int64_t query, int64_t key) {
  float* p = b.p + row * kKeys;
  float* ds = b.ds + row * kKeys;
  const int visible = Visible(a, query, key);
  for (int i = visible; i < kKeys; ++i) p[i] = -__builtin_inff();
  const float logsumexp = a.logsumexp[query];
  const float delta = b.delta[query];
  if (a.dropout.threshold == 0) {
    for (int i = 0; i < kKeys; i += kLanes) {
      const Vec weight = Exp(Load(p + i) - logsumexp);
      Store(p + i, weight);
      Store(ds + i, weight * (Load(ds + i) - delta));
    }
    return;
  }
  uint32_t room[kPhiloxRoom];
  const uint32_t* bits = MaskBits(a, query, key, room);
  for (int i = 0; i < kKeys; i += kLanes) {
    const Vec weight = Exp(Load(p + i) - logsumexp);
    const Vec factor = DropoutFactor(a.dropout, bits + i);
    Store(p + i, weight * factor);
    Store(ds + i, weight * (Load(ds + i) * factor - delta));
  }
}

template <typename T>
void BackwardBlock(const RawAttention<T>& a, const Backward& b, int64_t query,
                   int rows, int64_t key, int keys) {
  const int64_t at = query * b.padded;
  BlockProduct<false>({.a = b.q + at,
                       .a_row = b.padded,
                       .a_column = 1,
                       .b = b.k_transposed,
                       .b_row = kKeys,
                       .c = b.p,
                       .c_row = kKeys,
                       .m = rows,
                       .n = kKeys,
                       .k = a.head_dim});
  BlockProduct<false>({.a = b.d_o + at,
                       .a_row = b.padded,
                       .a_column = 1,
                       .b = b.v_transposed,
                       .b_row = kKeys,
                       .c = b.ds,
                       .c_row = kKeys,
                       .m = rows,
                       .n = kKeys,
                       .k = a.head_dim});
  for (int r = 0; r < rows; ++r) GradientRow(a, b, r, query + r, key);
  BlockProduct<true>({.a = b.p,
                      .a_row = 1,
                      .a_column = kKeys,
                      .b = b.d_o + at,
                      .b_row = b.padded,
                      .c = a.dv_sum + key * b.padded,
                      .c_row = b.padded,
                      .m = keys,
                      .n = b.padded,
                      .k = rows});
  BlockProduct<true>({.a = b.ds,
                      .a_row = 1,
                      .a_column = kKeys,
                      .b = b.q + at,
                      .b_row = b.padded,
                      .c = a.dk_sum + key * b.padded,
                      .c_row = b.padded,
                      .m = keys,
                      .n = b.padded,
                      .k = rows});
  BlockProduct<true>({.a = b.ds,
                      .a_row = kKeys,
                      .a_column = 1,
                      .b = b.k,
                      .b_row = b.padded,
                      .c = b.dq + at,
                      .c_row = b.padded,
                      .m = rows,
                      .n = b.padded,
                      .k = keys});
}

template <typename T>
void PackQueries(const RawAttention<T>& a, const Backward& b) {
  PackRows(a.q, a.q_stride, a.q_length, a.head_dim, b.padded, a.scale, b.q);
  PackRows(a.d_o, a.d_o_stride, a.q_length, a.head_dim, b.padded, 1.0f, b.d_o);
  for (int64_t i = 0; i < a.q_length * b.padded; i += kLanes) {
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
  const Backward b = Lay(a);
  PackQueries(a, b);
  for (int64_t key = 0; key < a.kv_length; key += kKeys) {
    const int keys = static_cast<int>(Least(kKeys, a.kv_length - key));
    const T* k = a.k + key * a.k_stride;
    PackRows(k, a.k_stride, keys, a.head_dim, b.padded, 1.0f, b.k);
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
      Store(a.dq + query * a.dq_stride + i,
            Load(b.dq + query * b.padded + i) * a.scale, l);
    });
  }
}

template void AttentionBackward(const RawAttention<float>& a);
template void AttentionBackward(const RawAttention<uint16_t>& a);

}  // namespace TROUPE_SIMD
}  // namespace troupe
