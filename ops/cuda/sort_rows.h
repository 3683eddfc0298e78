// Rows in the order of their tokens, those of one token in their own order:
// what lets the gradient of a token table be added up in a fixed order.
//
//   const SortedRows sorted(cuda, tokens, count, vocabulary);
//   Launch(cuda, AddRuns, {...}, sorted.keys(), sorted.rows(), ...);
#ifndef TROUPE_OPS_CUDA_SORT_ROWS_H_
#define TROUPE_OPS_CUDA_SORT_ROWS_H_

#include <cstdint>

#include "ops/cuda/kernel_device.h"
#include "ops/cuda/scratch.h"

namespace troupe::cuda {

// Scratch memory with `count` keys and rows on the device: 16 bytes for each
// while it lives, and some more while it sorts.
class SortedRows {
 public:
  // Enqueues the sort, by CUB, of tokens [count] on the device. Tokens outside
  // the vocabulary all have its size as their key, and so come last.
  SortedRows(CudaDevice& cuda, const int32_t* tokens, int count,
             int32_t vocabulary);
  SortedRows(const SortedRows&) = delete;

  const uint32_t* keys() const { return keys_; }  // the tokens, ascending
  const int32_t* rows() const { return rows_; }   // whose each was

 private:
  Scratch memory_;
  const uint32_t* keys_ = nullptr;
  const int32_t* rows_ = nullptr;
};

}  // namespace troupe::cuda

#endif  // TROUPE_OPS_CUDA_SORT_ROWS_H_
