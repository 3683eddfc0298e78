// Products of f32 matrices by oneDNN's sgemm, which picks its code for this
// machine by itself and needs no preparation for new sizes. Its matmul
// primitive is no faster on the shapes of a transformer.
#ifndef TROUPE_OPS_CPU_F32_PRODUCT_H_
#define TROUPE_OPS_CPU_F32_PRODUCT_H_

#include "ops/matmul.h"

namespace troupe::cpu {

// Columns [first, first + count) of c (+)= op(a) op(b), on as many threads as
// OpenMP gives the caller; what else the arguments ask of c is left to the
// caller.
void SgemmColumns(const MatMulArgs& args, int64_t first, int64_t count);

}  // namespace troupe::cpu

#endif  // TROUPE_OPS_CPU_F32_PRODUCT_H_
