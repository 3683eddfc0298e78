// Numbers in four bits each, of what ranks send over slow links: of each block
// of 64 elements a scale, the largest magnitude over 7, and 64 whole numbers
// from -7 to 7, element = number x scale. Numbers are rounded to nearest, ties
// to even. A block with an element that is not finite becomes NaN, all of it,
// so that its users find out.
//
// Compressed, a block is 36 bytes: the scale, and the numbers plus 8 in the
// halves of bytes, the first in the lower half. A last block may have fewer
// elements; what its other halves say is 0.
#ifndef TROUPE_OPS_INT4_H_
#define TROUPE_OPS_INT4_H_

#include <cstdint>

#include "ops/tensor.h"

namespace troupe {

class Device;

inline constexpr int64_t kInt4Block = 64;
inline constexpr int64_t kInt4BlockBytes = 4 + kInt4Block / 2;

// In words of four bytes.
constexpr int64_t Int4Words(int64_t elements) {
  return (elements + kInt4Block - 1) / kInt4Block * kInt4BlockBytes / 4;
}

struct Int4Args {
  Tensor elements;    // f32 [n]; read by ToInt4, written by FromInt4
  Tensor compressed;  // f32 [Int4Words(n)], whose bytes are as above
};

void ToInt4(Device& device, const Int4Args& args);
void FromInt4(Device& device, const Int4Args& args);

}  // namespace troupe

#endif  // TROUPE_OPS_INT4_H_
