// The type of the elements that memory holds: tensors' and those of what ranks
// exchange. A plan's ElementType (proto/cluster.proto) and the names in a
// checkpoint (storage/checkpoint/stored_dtype.h) say it in files and messages.
#ifndef TROUPE_OPS_DTYPE_H_
#define TROUPE_OPS_DTYPE_H_

#include <cstddef>
#include <cstdint>

namespace troupe {

// kF64 holds results of long reductions (losses, norms), never activations.
// kI64 and kU8 are only moved, or summed, between ranks: no kernel takes them.
enum class DType : uint8_t { kF32, kBF16, kI32, kF64, kF16, kI64, kU8 };

size_t DTypeBytes(DType dtype);
const char* DTypeName(DType dtype);  // "f32", "bf16", "fp16", "i32", ...

// Whether sums are taken in f32 and rounded once: bf16, fp16.
bool IsNarrow(DType dtype);

}  // namespace troupe

#endif  // TROUPE_OPS_DTYPE_H_
