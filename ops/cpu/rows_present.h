// How many rows of experts there are in tensors with room for more.
#ifndef TROUPE_OPS_CPU_ROWS_PRESENT_H_
#define TROUPE_OPS_CPU_ROWS_PRESENT_H_

#include <cstdint>

#include "ops/tensor.h"
#include "proto/base/check.h"

namespace troupe::cpu {

// Of `rows`; all of them where there are no offsets (ops/grouped_matmul.h).
inline int64_t RowsPresent(const Tensor& offsets, int64_t rows) {
  if (!offsets.defined()) return rows;
  const int64_t present = offsets.data<int32_t>()[offsets.elements() - 1];
  CHECK(0 <= present && present <= rows)
      << "groups of " << present << " rows in " << rows;
  return present;
}

}  // namespace troupe::cpu

#endif  // TROUPE_OPS_CPU_ROWS_PRESENT_H_
