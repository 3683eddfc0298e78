#include "ops/cpu/simd/attention_blocks.h"
#include "ops/cpu/simd/block_product.h"
#include "ops/cpu/simd/loops.h"
#include "ops/cpu/simd/transpose.h"
#include "ops/cpu/simd/vec.h"

namespace troupe {
namespace TROUPE_SIMD {
namespace {

// `count` of the numbers at p, at most a vector of them; zeros beyond.
template <typename T>
inline Vec LoadSome(const T* p, int64_t count) {
  if (count >= kLanes) return Load(p);
  return count > 0 ? Load(p, Part{static_cast<int>(count)}) : Vec{};
}

// Of a vector whose first number is number `at` of `width`, those within. Where
// the strip's next depth is written after this (`followed`), it may get the
// rest, which is one store instead of two or three.
template <int width>
inline void StoreWithin(float* p, int at, Vec v, bool followed) {
  if (at + kLanes <= width || (followed && at + kLanes <= 2 * width)) {
    Store(p + at, v);
  } else {
    Store(p + at, v, Part{width - at});
  }
}

// Numbers that lie side by side at each depth, for a few strips at once: a line
// of memory holds those of several, and the next depth is far away.
template <int width, typename T>
inline void PackNeighbours(const RawPack<T>& args, const T* from, int64_t count,
                           float* to) {
  for (int64_t p = 0; p < args.depth; ++p) {
    const T* const numbers = from + p * args.step;
    const bool followed = p + 1 < args.depth;
    float* strip = to + p * width;
    int64_t first = 0;
    for (; first + width + kLanes <= count; first += width) {
#pragma GCC unroll 4
      for (int at = 0; at < width; at += kLanes) {
        StoreWithin<width>(strip, at, Load(numbers + first + at), followed);
      }
      strip += width * args.depth;
    }
    for (; first < count; first += width) {
      for (int at = 0; at < width; at += kLanes) {
        StoreWithin<width>(strip, at,
                           LoadSome(numbers + first + at, count - first - at),
                           followed);
      }
      strip += width * args.depth;
    }
  }
}

// Depths [p, p + depth) of a strip of which each number is a run along the
// depth. `all`: they are a vector of depths, of all numbers of a strip.
template <int width, bool all, typename T>
inline void PackSquares(const RawPack<T>& args, const T* from, int count,
                        int64_t depth, bool followed, float* to) {
#pragma GCC unroll 4
  for (int at = 0; at < width; at += kLanes) {
    Vec square[kLanes];
#pragma GCC unroll 16
    for (int i = 0; i < kLanes; ++i) {
      const bool there = at + i < (all ? width : count);
      const T* const run = from + (at + i) * args.stride;
      square[i] = !there ? Vec{} : all ? Load(run) : LoadSome(run, depth);
    }
    Transpose(square);
#pragma GCC unroll 16
    for (int i = 0; i < kLanes; ++i) {
      if (all || i < depth) {
        StoreWithin<width>(to + i * width, at, square[i],
                           followed || i + 1 < depth);
      }
    }
  }
}

template <int width, typename T>
inline void PackRuns(const RawPack<T>& args, const T* from, int count,
                     float* to) {
  int64_t p = 0;
  if (count == width) {
    for (; p + kLanes <= args.depth; p += kLanes) {
      PackSquares<width, true>(args, from + p, width, kLanes,
                               p + kLanes < args.depth, to + p * width);
    }
  }
  for (; p < args.depth; p += kLanes) {
    PackSquares<width, false>(args, from + p, count,
                              Least(kLanes, args.depth - p),
                              p + kLanes < args.depth, to + p * width);
  }
}

template <int width, typename T>
void Pack(const RawPack<T>& args) {
  constexpr int64_t kNumbersAtOnce = 64;  // two lines of memory
  constexpr int64_t kStrips =
      width < kNumbersAtOnce ? kNumbersAtOnce / width : 1;
  const bool runs = args.stride != 1;
  const int64_t step = runs ? width : width * kStrips;
  for (int64_t first = 0; first < args.count; first += step) {
    const T* const from = args.from + first * args.stride;
    const int64_t count = Least(step, args.count - first);
    float* const to = args.to + first * args.depth;
    if (runs) {
      PackRuns<width>(args, from, static_cast<int>(count), to);
    } else {
      PackNeighbours<width>(args, from, count, to);
    }
  }
}

constexpr int kColumns = kTileVecs * kLanes;

// How many strips of rows of a stay in the cache nearest to the core but one
// while all of b passes by them.
constexpr int64_t kStripsAtOnce = 16;

template <bool accumulate>
void Multiply(const RawPackedProduct& args) {
  Block<float> t = {.a_row = 1,
                    .a_column = kTileRows,
                    .b_row = kColumns,
                    .c_row = kColumns,
                    .n = kColumns,
                    .k = static_cast<int>(args.depth)};
  for (int64_t at = 0; at < args.a_strips; at += kStripsAtOnce) {
    const int64_t end = Least(at + kStripsAtOnce, args.a_strips);
    for (int64_t j = 0; j < args.b_strips; ++j) {
      for (int64_t i = at; i < end; ++i) {
        t.a = args.a + i * kTileRows * args.depth;
        t.b = args.b + j * kColumns * args.depth;
        t.c = args.sums + (i * args.b_strips + j) * kTileRows * kColumns;
        t.m = static_cast<int>(Least(kTileRows, args.rows - i * kTileRows));
        StripeProduct<accumulate, kTileVecs>(t, 0);
      }
    }
  }
}

// Of what is computed, what is given, and what is there.
template <typename T, typename C, typename Lanes>
inline Vec SumOf(const T* bias, const C* added, const float* sums, int64_t i,
                 Lanes lanes) {
  Vec sum = Load(sums, lanes);
  if (bias) sum += Load(bias + i, lanes);
  return added ? sum + Load(added + i, lanes) : sum;
}

}  // namespace

template <typename T, typename C>
void StoreSums(const RawStoreSums<T, C>& args) {
  for (int64_t row = 0; row < args.rows; ++row) {
    const float* tile = args.sums +
                        row / kTileRows * args.b_strips * kTileRows * kColumns +
                        row % kTileRows * kColumns;
    C* const c = args.c + row * args.c_stride;
    const C* const added = args.accumulate ? c : nullptr;
    for (int64_t j = 0; j < args.columns; j += kColumns) {
      ForEachVec(Least(kColumns, args.columns - j), [&](int64_t i, auto l) {
        Store(c + j + i, SumOf(args.bias, added, tile + i, j + i, l), l);
      });
      tile += kTileRows * kColumns;
    }
  }
}

template <typename T>
void PackProductRows(const RawPack<T>& args) {
  Pack<kTileRows>(args);
}

template <typename T>
void PackProductColumns(const RawPack<T>& args) {
  Pack<kColumns>(args);
}

template void PackProductRows(const RawPack<float>&);
template void PackProductColumns(const RawPack<float>&);
template void StoreSums(const RawStoreSums<float, float>&);
template void PackProductRows(const RawPack<uint16_t>&);
template void PackProductColumns(const RawPack<uint16_t>&);
template void StoreSums(const RawStoreSums<uint16_t, uint16_t>&);
template void StoreSums(const RawStoreSums<uint16_t, float>&);
template void PackProductRows(const RawPack<Fp16>&);
template void PackProductColumns(const RawPack<Fp16>&);
template void StoreSums(const RawStoreSums<Fp16, Fp16>&);
template void StoreSums(const RawStoreSums<Fp16, float>&);

void MultiplyPacked(const RawPackedProduct& args) {
  if (args.accumulate) {
    Multiply<true>(args);
  } else {
    Multiply<false>(args);
  }
}

}  // namespace TROUPE_SIMD
}  // namespace troupe
