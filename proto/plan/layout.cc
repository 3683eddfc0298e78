#include "proto/plan/layout.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/base/check.h"
#include "proto/plan/mesh.h"

namespace troupe {

Range EvenPiece(int64_t size, const Piece& piece) {
  CHECK(piece.count >= 1 && piece.index >= 0 && piece.index < piece.count)
      << "piece " << piece.index << " of " << piece.count;
  const int64_t shortest = size / piece.count;
  const int64_t longer = size % piece.count;
  const int64_t begin =
      piece.index * shortest + std::min<int64_t>(piece.index, longer);
  return {begin, begin + shortest + (piece.index < longer ? 1 : 0)};
}

Range EvenLines(int64_t elements, const Piece& piece) {
  const Range lines =
      EvenPiece((elements + kLineElements - 1) / kLineElements, piece);
  return {std::min(elements, lines.begin * kLineElements),
          std::min(elements, lines.end * kLineElements)};
}

Range WeightedLines(int64_t elements, absl::Span<const int32_t> weights,
                    int index) {
  CHECK(index >= 0 && static_cast<size_t>(index) < weights.size()) << index;
  return AllWeightedLines(elements, weights)[index];
}

std::vector<Range> AllWeightedLines(int64_t elements,
                                    absl::Span<const int32_t> weights) {
  const int64_t all =
      std::accumulate(weights.begin(), weights.end(), int64_t{0});
  const int64_t lines = (elements + kLineElements - 1) / kLineElements;
  std::vector<Range> slices;
  slices.reserve(weights.size());
  int64_t part = 0;
  int64_t end = 0;
  for (const int32_t weight : weights) {
    part += weight;
    // lines x part / all, whose product may be too large.
    const int64_t before = lines / all * part + lines % all * part / all;
    const int64_t begin = end;
    end = std::min(elements, before * kLineElements);
    slices.push_back({begin, end});
  }
  return slices;
}

absl::Status CheckLayout(const Layout& layout, const Mesh& mesh,
                         const std::vector<int64_t>& shape) {
  std::set<std::string> named;
  for (const Layout::AxisLayout& axis : layout.axes()) {
    const bool known =
        std::any_of(mesh.axes().begin(), mesh.axes().end(),
                    [&axis](const Axis& a) { return a.name() == axis.axis(); });
    if (!known) {
      return absl::InvalidArgumentError(
          absl::StrCat("layout names axis ", axis.axis(),
                       ", which the mesh does not have: ", MeshText(mesh)));
    }
    if (!named.insert(axis.axis()).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("layout names axis ", axis.axis(), " twice"));
    }
    if (axis.placement() == Layout::SHARD &&
        (axis.dim() < 0 || axis.dim() >= static_cast<int>(shape.size()))) {
      return absl::InvalidArgumentError(
          absl::StrCat("layout shards dim ", axis.dim(), " of a tensor of ",
                       shape.size(), " dims"));
    }
  }
  return absl::OkStatus();
}

std::vector<Range> SliceOf(const Layout& layout, const Mesh& mesh, int rank,
                           const std::vector<int64_t>& shape) {
  std::vector<Range> slice;
  for (const int64_t size : shape) slice.push_back({0, size});
  for (const Layout::AxisLayout& axis : layout.axes()) {
    if (axis.placement() != Layout::SHARD) continue;
    Range& range = slice.at(axis.dim());
    const Range piece =
        EvenPiece(range.size(), {.index = CoordinateOn(mesh, axis.axis(), rank),
                                 .count = AxisSize(mesh, axis.axis())});
    range = {range.begin + piece.begin, range.begin + piece.end};
  }
  return slice;
}

bool IsPartial(const Layout& layout) {
  return std::any_of(layout.axes().begin(), layout.axes().end(),
                     [](const Layout::AxisLayout& axis) {
                       return axis.placement() == Layout::PARTIAL;
                     });
}

std::string LayoutText(const Layout& layout) {
  std::vector<std::string> parts;
  for (const Layout::AxisLayout& axis : layout.axes()) {
    if (axis.placement() == Layout::SHARD) {
      parts.push_back(absl::StrCat("Shard(", axis.dim(), ") on ", axis.axis()));
    } else if (axis.placement() == Layout::PARTIAL) {
      parts.push_back(absl::StrCat("Partial on ", axis.axis()));
    }
  }
  return parts.empty() ? "Replicate" : absl::StrJoin(parts, ", ");
}

}  // namespace troupe
