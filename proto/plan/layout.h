// How one tensor lies over the mesh, and which slice that gives a rank.
//
// A dim that several axes shard is cut by the first axis named, each piece by
// the next, and so on. Pieces are as even as can be: the first n % k of k
// pieces are one longer. So the slices of all ranks tile the tensor, each
// element exactly as often as the replicating axes multiply it.
#ifndef TROUPE_PROTO_PLAN_LAYOUT_H_
#define TROUPE_PROTO_PLAN_LAYOUT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "proto/plan.pb.h"

namespace troupe {

// A half-open range of a dim or of a flat buffer.
struct Range {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t size() const { return end - begin; }
  bool operator==(const Range&) const = default;
};

// Piece `index` of `count` even pieces of [0, size).
struct Piece {
  int index = 0;
  int count = 1;
};
Range EvenPiece(int64_t size, const Piece& piece);

// The same of a flat buffer, in lines of 64 bytes of f32: what each of the
// ranks that have it alike does of it. No piece is longer than the first.
inline constexpr int64_t kLineElements = 16;
Range EvenLines(int64_t elements, const Piece& piece);
// Slice `index` of slices that are in proportion to weights, in such lines.
// REQUIRES weights of 1 or more (CheckGroup).
Range WeightedLines(int64_t elements, absl::Span<const int32_t> weights,
                    int index);
// All of them, in one go over the weights.
std::vector<Range> AllWeightedLines(int64_t elements,
                                    absl::Span<const int32_t> weights);

// InvalidArgument: an axis the mesh lacks or named twice, a dim out of range.
absl::Status CheckLayout(const Layout& layout, const Mesh& mesh,
                         const std::vector<int64_t>& shape);

// One range for each dim of the tensor. REQUIRES CheckLayout.
std::vector<Range> SliceOf(const Layout& layout, const Mesh& mesh, int rank,
                           const std::vector<int64_t>& shape);

// Whether this rank holds summands only, on some axis.
bool IsPartial(const Layout& layout);

// "Shard(0) on tensor, Partial on data"; "Replicate".
std::string LayoutText(const Layout& layout);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_LAYOUT_H_
