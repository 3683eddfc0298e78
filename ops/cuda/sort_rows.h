// Rows in the order of their tokens, those of one token in their own order:
// what lets the gradient of a token table be added up in a fixed order.
#ifndef TROUPE_OPS_CUDA_SORT_ROWS_H_
#define TROUPE_OPS_CUDA_SORT_ROWS_H_

#include <cstdint>

#include "ops/cuda/kernel_device.h"

namespace troupe::cuda {

struct SortRowsArgs {
  const int32_t* tokens = nullptr;  // [rows]
  int rows = 0;
  int32_t vocabulary = 0;
  // [rows], written: the tokens, sorted, and whose each was. Tokens outside the
  // vocabulary come last.
  int32_t* sorted_tokens = nullptr;
  int32_t* sorted_rows = nullptr;
};

// Enqueues the sort, whose work grows as the rows do.
void SortRows(CudaDevice& cuda, const SortRowsArgs& args);

}  // namespace troupe::cuda

#endif  // TROUPE_OPS_CUDA_SORT_ROWS_H_
