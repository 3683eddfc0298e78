#include "ops/cpu/simd/attention_blocks.h"
#include "ops/cpu/simd/loops.h"

namespace troupe {
namespace TROUPE_SIMD {
namespace {

// scores[i] = q k_i, times what makes them powers of 2; returns the largest.
template <typename T>
float Scores(const RawAttention<T>& a, const T* q, const T* first_key,
             int64_t keys, float* scores) {
  float largest = -__builtin_inff();
  for (int64_t key = 0; key < keys; ++key) {
    const T* const k = first_key + key * a.k_stride;
    Vec sum{};
    ForEachVec(a.head_dim, [&](int64_t i, auto l) {
      sum += Load(q + i, l) * Load(k + i, l);
    });
    scores[key] = Sum(sum) * Log2Scale(a);
    largest = scores[key] > largest ? scores[key] : largest;
  }
  return largest;
}

// Scores become exp(score - largest), whose sum it returns.
inline float Exponentials(float* scores, int64_t keys, float largest) {
  Vec sum{};
  for (int64_t i = keys; i < RoundUp(keys, kLanes); ++i) {
    scores[i] = -__builtin_inff();
  }
  for (int64_t i = 0; i < keys; i += kLanes) {
    const Vec p = Exp2(Load(scores + i) - largest);
    sum += p;
    Store(scores + i, p);
  }
  return Sum(sum);
}

// `vecs` vectors of columns of o = scale sum_i p_i v_i.
template <int vecs, typename T, typename Lanes>
void WeighColumns(const RawAttention<T>& a, const T* v, const float* p,
                  int64_t keys, float scale, T* o, Lanes lanes) {
  Vec sums[vecs] = {};
  for (int64_t key = 0; key < keys; ++key) {
#pragma GCC unroll 4
    for (int i = 0; i < vecs; ++i) {
      sums[i] += Load(v + key * a.v_stride + i * kLanes, lanes) * p[key];
    }
  }
  for (int i = 0; i < vecs; ++i) {
    Store(o + i * kLanes, sums[i] * scale, lanes);
  }
}

template <typename T>
void Weigh(const RawAttention<T>& a, const T* v, const float* p, int64_t keys,
           float scale, T* o) {
  constexpr int kVecs = 4;  // sums enough to hide the latency of adding
  int i = 0;
  for (; i + kVecs * kLanes <= a.value_dim; i += kVecs * kLanes) {
    WeighColumns<kVecs>(a, v + i, p, keys, scale, o + i, Full{});
  }
  for (; i + kLanes <= a.value_dim; i += kLanes) {
    WeighColumns<1>(a, v + i, p, keys, scale, o + i, Full{});
  }
  if (i == a.value_dim) return;
  WeighColumns<1>(a, v + i, p, keys, scale, o + i, Part{a.value_dim - i});
}

}  // namespace

template <typename T>
bool IsOfFew(const RawAttention<T>& a) {
  // Of all heads that would share the packed keys. Pairs are multiplied at
  // twice the rate.
  constexpr int64_t kFew = Contracted<T>::kWidth == 1 ? 4 : 2;
  return (a.q_end - a.q_begin) * a.heads <= kFew && a.dropout.threshold == 0 &&
         a.result.rounded && !a.result.before &&
         Seen(a, a.q_begin) > FirstSeen(a, a.q_end - 1);
}

template <typename T>
void AttentionOfFew(const RawAttention<T>& a) {
  for (int head = 0; head < a.heads; ++head) {
    const RawAttention<T> one = OneHead(a, head);
    for (int64_t query = a.q_begin; query < a.q_end; ++query) {
      const int64_t first = FirstSeen(a, query);
      const int64_t keys = Seen(a, query) - first;
      float* const p = a.scratch;
      const float largest = Scores(one, one.q + query * a.q_stride,
                                   one.k + first * a.k_stride, keys, p);
      const float sum = Exponentials(p, keys, largest);
      Weigh(one, one.v + first * a.v_stride, p, keys, 1.0f / sum,
            one.result.rounded + query * a.result.stride);
      if (one.logsumexp) one.logsumexp[query] = LogSumExp(largest, sum);
    }
  }
}

template bool IsOfFew(const RawAttention<float>& a);
template bool IsOfFew(const RawAttention<uint16_t>& a);
template void AttentionOfFew(const RawAttention<float>& a);
template void AttentionOfFew(const RawAttention<uint16_t>& a);
template bool IsOfFew(const RawAttention<Fp16>& a);
template void AttentionOfFew(const RawAttention<Fp16>& a);

}  // namespace TROUPE_SIMD
}  // namespace troupe
