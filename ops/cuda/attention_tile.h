// What attention keeps in shared memory: tiles of rows of q, k, v, o or their
// gradients, as they lie in global memory but for padding with zeros.
#ifndef TROUPE_OPS_CUDA_ATTENTION_TILE_H_
#define TROUPE_OPS_CUDA_ATTENTION_TILE_H_

#include <cstdint>
#include <type_traits>

#include "ops/cuda/block.h"
#include "ops/cuda/mma.h"

namespace troupe::cuda {

// Rows of one head in global memory, from some row on.
template <typename T>
struct HeadRows {
  T* first;
  int64_t stride;  // in elements
  int count;       // how many there are; none where it is not positive
  int columns;     // of each: the head dim
  bool vectors;  // whether each row begins at 16 bytes and has multiples of it
};

// kRows rows of kDim elements. Where eight lanes read 16 bytes each from
// consecutive rows, they meet no bank twice: the 16-byte chunks of a row of
// two-byte elements change places by the row's number, f32 rows have one chunk
// more.
template <typename T, int kRows, int kDim>
struct Tile {
  static constexpr int kChunk = 16 / sizeof(T);  // elements
  static constexpr int kPitch = sizeof(T) == 2 ? kDim : kDim + kChunk;
  static constexpr int kBytes = kRows * kPitch * sizeof(T);
  static_assert(kDim % (8 * kChunk) == 0);

  T* data;

  __device__ T* At(int row, int column) const {
    if constexpr (sizeof(T) == 2) {
      const int chunk = (column / kChunk) ^ (row % 8);
      return data + row * kPitch + chunk * kChunk + column % kChunk;
    } else {
      return data + row * kPitch + column;
    }
  }

  // Begins to fill the tile, zeros being beyond the rows and columns that there
  // are. All threads of the block call it, and wait as CopyAsync says.
  template <int kThreads, typename From>
  __device__ void Fill(const HeadRows<From>& from) const {
    constexpr int kChunks = kDim / kChunk;
#pragma unroll 1
    for (int i = threadIdx.x; i < kRows * kChunks; i += kThreads) {
      const int row = i / kChunks;
      const int column = i % kChunks * kChunk;
      const bool present = row < from.count;
      const From* source = from.first + (present ? row * from.stride : 0);
      if (from.vectors) {
        const bool inside = present && column < from.columns;
        CopyAsync<16>(At(row, column), source + (inside ? column : 0), inside);
        continue;
      }
      for (int e = column; e < column + kChunk; ++e) {
        *At(row, e) = present && e < from.columns ? source[e] : T{};
      }
    }
  }

  // Writes the rows and columns that there are. The tile is complete: a barrier
  // came before.
  template <int kThreads>
  __device__ void Store(const HeadRows<T>& to) const {
    constexpr int kChunks = kDim / kChunk;
    for (int i = threadIdx.x; i < kRows * kChunks; i += kThreads) {
      const int row = i / kChunks;
      const int column = i % kChunks * kChunk;
      if (row >= to.count || column >= to.columns) continue;
      T* target = to.first + row * to.stride;
      if (to.vectors) {
        *reinterpret_cast<uint4*>(target + column) =
            *reinterpret_cast<const uint4*>(At(row, column));
        continue;
      }
      for (int e = column; e < column + kChunk && e < to.columns; ++e) {
        target[e] = *At(row, e);
      }
    }
  }
};

// The tiles of a kernel, one behind the other in its dynamic shared memory.
class SharedMemory {
 public:
  __device__ SharedMemory() : next_(DynamicShared<unsigned char>()) {}

  // `bytes` is a multiple of 16.
  template <typename T>
  __device__ T* Take(int bytes) {
    T* taken = reinterpret_cast<T*>(next_);
    next_ += bytes;
    return taken;
  }
  template <typename SomeTile>
  __device__ SomeTile Take() {
    return {Take<std::remove_pointer_t<decltype(SomeTile::data)>>(
        SomeTile::kBytes)};
  }

 private:
  unsigned char* next_;
};

}  // namespace troupe::cuda

#endif  // TROUPE_OPS_CUDA_ATTENTION_TILE_H_
