// CUB's radix sort, which is stable, over as many bits as the vocabulary has.
#include <cub/device/device_radix_sort.cuh>

#include "ops/cuda/elements.h"
#include "ops/cuda/launch.h"
#include "ops/cuda/scratch.h"
#include "ops/cuda/sort_rows.h"

namespace troupe::cuda {
namespace {

__global__ void NumberRowsKernel(const int32_t* tokens, int count,
                                 int32_t vocabulary, uint32_t* keys,
                                 int32_t* rows) {
  const int64_t at = FlatBegin(1);
  if (at >= count) return;
  const int32_t token = tokens[at];
  const bool inside = token >= 0 && token < vocabulary;
  keys[at] = static_cast<uint32_t>(inside ? token : vocabulary);
  rows[at] = static_cast<int32_t>(at);
}

int BitsOf(uint32_t most) {
  int bits = 1;
  while (most >> bits != 0) ++bits;  // of an int32_t: below 32
  return bits;
}

}  // namespace

SortedRows::SortedRows(CudaDevice& cuda, const int32_t* tokens, int count,
                       int32_t vocabulary)
    : memory_(cuda, size_t{4} * count * sizeof(int32_t)) {
  uint32_t* const keys = memory_.as<uint32_t>();
  int32_t* const rows = memory_.as<int32_t>() + 2 * int64_t{count};
  Launch(cuda, NumberRowsKernel, FlatShape(count, 1), tokens, count, vocabulary,
         keys, rows);
  // Each pass reads one half and writes the other; CUB says which is last.
  cub::DoubleBuffer<uint32_t> of_keys(keys, keys + count);
  cub::DoubleBuffer<int32_t> of_rows(rows, rows + count);
  size_t bytes = 0;
  const auto sort = [&](void* working, cudaStream_t stream) {
    return cub::DeviceRadixSort::SortPairs(
        working, bytes, of_keys, of_rows, count, 0,
        BitsOf(static_cast<uint32_t>(vocabulary)), stream);
  };
  // Without memory it says how much it wants.
  EnqueueOn(cuda, {.name = "memory of DeviceRadixSort", .size = count},
            [&](cudaStream_t stream) { return sort(nullptr, stream); });
  const Scratch working(cuda, bytes);
  EnqueueOn(
      cuda, {.name = "DeviceRadixSort", .size = count},
      [&](cudaStream_t stream) { return sort(working.as<void>(), stream); });
  keys_ = of_keys.Current();
  rows_ = of_rows.Current();
}

}  // namespace troupe::cuda
