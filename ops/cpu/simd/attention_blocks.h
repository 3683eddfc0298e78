// What forward and backward attention share: the block sizes, and which keys a
// query sees. attention_pack.h packs a head's rows into such blocks.
#ifndef TROUPE_OPS_CPU_SIMD_ATTENTION_BLOCKS_H_
#define TROUPE_OPS_CPU_SIMD_ATTENTION_BLOCKS_H_

#include "ops/cpu/simd/attention_result.h"
#include "ops/cpu/simd/philox_vec.h"
#include "ops/cpu/simd/table.h"
#include "ops/cpu/simd/vec.h"
#include "ops/cpu/simd/vec_math.h"

namespace troupe {
namespace TROUPE_SIMD {

constexpr int kQueries = 64;  // of a block
constexpr int kKeys = 64;     // of a block; a multiple of every kLanes
static_assert(kKeys % kLanes == 0 && kKeys <= kPhiloxRun);

// Softmax by powers of 2, to which the scores' scale brings them at no cost:
// e^x = 2^(x kLog2E).
constexpr float kLog2E = 1.44269504088896341f;
template <typename T>
inline float Log2Scale(const RawAttention<T>& a) {
  return a.scale * kLog2E;
}

inline int64_t RoundUp(int64_t n, int64_t to) { return (n + to - 1) / to * to; }
inline int64_t Least(int64_t a, int64_t b) { return a < b ? a : b; }

// What a product takes at once along the dimension that it contracts (see
// Block): an f32, or a pair of bf16 where an instruction multiplies pairs. Else
// bf16, and fp16 always, is widened once, when it is packed.
template <typename T>
struct Contracted;
template <>
struct Contracted<float> {
  using Element = float;
  static constexpr int kWidth = 1;  // of T
};
template <>
struct Contracted<uint16_t> {
#if defined(__AVX512BF16__)
  using Element = uint32_t;
  static constexpr int kWidth = 2;
#else
  using Element = float;
  static constexpr int kWidth = 1;
#endif
};
template <>
struct Contracted<Fp16> {
  using Element = float;
  static constexpr int kWidth = 1;
};
template <typename T>
using Element = typename Contracted<T>::Element;
// Each number of one.
template <typename T>
struct Number {
  using Type = float;
};
template <>
struct Number<uint32_t> {
  using Type = uint16_t;
};
template <typename T>
using Factor = typename Number<Element<T>>::Type;
// How many elements hold n numbers.
template <typename T>
constexpr int64_t Elements(int64_t n) {
  return (n + Contracted<T>::kWidth - 1) / Contracted<T>::kWidth;
}

// From scores that are powers of 2.
inline float LogSumExp(float largest, float sum) {
  return static_cast<float>(largest / kLog2E + __builtin_log(double{sum}));
}

template <typename T>
inline RawAttention<T> OneHead(const RawAttention<T>& a, int head) {
  RawAttention<T> one = a;
  one.q += head * a.head_dim;
  one.result = AtColumn(a.result, int64_t{head} * a.value_dim);
  if (a.logsumexp) one.logsumexp += head * a.q_length;
  one.dropout.first_element +=
      static_cast<uint64_t>(head) * a.part.length * a.part.length;
  return one;
}

// How many of the keys query sees, of all and of [key, key + kKeys).
template <typename T>
inline int64_t Seen(const RawAttention<T>& a, int64_t query) {
  return KeysSeen(a.part, a.kv_length, query);
}
template <typename T>
inline int Visible(const RawAttention<T>& a, int64_t query, int64_t key) {
  const int64_t seen = Seen(a, query) - key;
  return static_cast<int>(seen < 0 ? 0 : Least(seen, kKeys));
}

// The first of all keys that a query sees, those of documents before its own
// being hidden; and how many of [key, key + kKeys) are hidden so.
template <typename T>
inline int64_t FirstSeen(const RawAttention<T>& a, int64_t query) {
  return FirstKeySeen(a.part, a.kv_length, a.documents, query);
}
template <typename T>
inline int Hidden(const RawAttention<T>& a, int64_t query, int64_t key) {
  const int64_t hidden = FirstSeen(a, query) - key;
  return static_cast<int>(hidden < 0 ? 0 : Least(hidden, kKeys));
}
// Whether each of some neighbouring queries sees all of [key, key + kKeys): of
// them the first sees least ahead, the last least behind.
template <typename T>
inline bool AllVisible(const RawAttention<T>& a, int64_t query, int rows,
                       int64_t key) {
  return Visible(a, query, key) == kKeys &&
         Hidden(a, query + rows - 1, key) == 0;
}

// Of the keys of a block, those [from, kKeys) are at positions whose numbers
// begin with `first`. Rare, and not inline, so that others are as fast as can
// be.
__attribute__((noinline)) inline void DrawAgain(const RawPhilox& philox,
                                                uint64_t first, int from,
                                                uint32_t* bits) {
  uint32_t room[kPhiloxRoom];
  const uint32_t* const drawn = PhiloxRun(philox, first, kKeys - from, room);
  __builtin_memcpy(bits + from, drawn, (kKeys - from) * sizeof(uint32_t));
}

// The dropout numbers of one query for a block of keys, which may lie in two
// runs of positions.
template <typename T>
inline const uint32_t* MaskBits(const RawAttention<T>& a, int64_t query,
                                int64_t key, uint32_t* room) {
  const SequenceRows& keys = a.part.keys;
  const uint64_t row =
      a.dropout.first_element +
      static_cast<uint64_t>(PositionOf(a.part.queries, query) * a.part.length);
  const uint32_t* const bits =
      PhiloxRun(a.dropout.philox, row + PositionOf(keys, key), kKeys, room);
  const int64_t in_first = keys.first_count - key;
  if (in_first > 0 && in_first < kKeys) {
    DrawAgain(a.dropout.philox, row + keys.second, static_cast<int>(in_first),
              room + (bits - room));
  }
  return bits;
}

}  // namespace TROUPE_SIMD
}  // namespace troupe

#endif  // TROUPE_OPS_CPU_SIMD_ATTENTION_BLOCKS_H_
