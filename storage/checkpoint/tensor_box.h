// A hyper-rectangle of a tensor: where a shard lies, and what a reader asks
// for. All tensors are dense and row-major (the last dim is contiguous); a
// scalar has no dims and one element.
#ifndef TROUPE_STORAGE_CHECKPOINT_TENSOR_BOX_H_
#define TROUPE_STORAGE_CHECKPOINT_TENSOR_BOX_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"

namespace troupe {

struct TensorBox {
  std::vector<int64_t> start;  // first element in each dim
  std::vector<int64_t> shape;  // elements in each dim

  bool operator==(const TensorBox&) const = default;
};

// All of a tensor.
TensorBox WholeTensor(std::vector<int64_t> shape);

// InvalidArgument for a negative size, or more than kElementsMax elements: what
// is read from a file is checked before it is multiplied.
inline constexpr int64_t kElementsMax = int64_t{1} << 56;
absl::Status CheckShape(absl::Span<const int64_t> shape);

// The product; 1 for a scalar. Requires a shape that passes CheckShape.
int64_t ElementCount(absl::Span<const int64_t> shape);

// "[0:8, 4:6]".
std::string FormatBox(const TensorBox& box);

// What two boxes of one tensor share; nullopt where that is nothing.
absl::optional<TensorBox> Intersect(const TensorBox& a, const TensorBox& b);

// InvalidArgument unless the box lies inside a tensor of this shape.
absl::Status CheckInside(const TensorBox& box, absl::Span<const int64_t> shape);

// InvalidArgument unless the boxes hold each element of the tensor exactly
// once; the error names two boxes that overlap, or an element that none holds.
absl::Status CheckTiling(absl::Span<const TensorBox> boxes,
                         absl::Span<const int64_t> shape);

// The fewest boxes, in order, that hold elements [begin, begin + count) of the
// flattened tensor: how a range of a flat buffer (a ZeRO partition) is written
// as shards. At most 2 * dims - 1 boxes, concatenated they are the range.
struct FlatRange {
  int64_t begin = 0;
  int64_t count = 0;
};
std::vector<TensorBox> BoxesOfRange(absl::Span<const int64_t> shape,
                                    const FlatRange& range);

// The other way round: where the elements of `region` lie in a dense buffer
// that holds `box`, in order and in as few ranges as there are gaps between
// them, and one more. Requires that the box contains the region.
std::vector<FlatRange> RangesOfBox(const TensorBox& region,
                                   const TensorBox& box);

// Copies the elements of `region` between two dense buffers that hold the boxes
// `from_box` and `to_box` of one tensor. Requires that both contain the region.
struct CopyBoxArgs {
  const TensorBox& region;
  const TensorBox& from_box;
  const char* from = nullptr;
  const TensorBox& to_box;
  char* to = nullptr;
  int64_t element_bytes = 0;
};
void CopyBox(const CopyBoxArgs& args);

}  // namespace troupe

#endif  // TROUPE_STORAGE_CHECKPOINT_TENSOR_BOX_H_
