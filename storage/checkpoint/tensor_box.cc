#include "storage/checkpoint/tensor_box.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/base/check.h"
#include "proto/base/status.h"

namespace troupe {
namespace {

// Where element `at` of the tensor lies in a dense buffer that holds `box`.
int64_t OffsetIn(const TensorBox& box, absl::Span<const int64_t> at) {
  int64_t offset = 0;
  for (size_t d = 0; d < at.size(); ++d) {
    offset = offset * box.shape[d] + (at[d] - box.start[d]);
  }
  return offset;
}

bool Contains(const TensorBox& outer, const TensorBox& inner) {
  if (outer.start.size() != inner.start.size()) return false;
  for (size_t d = 0; d < inner.start.size(); ++d) {
    if (inner.start[d] < outer.start[d] ||
        inner.start[d] + inner.shape[d] > outer.start[d] + outer.shape[d]) {
      return false;
    }
  }
  return true;
}

// Appends the boxes of [begin, end) of the flattened sub-tensor at `prefix`.
void AppendBoxes(absl::Span<const int64_t> shape,
                 const std::vector<int64_t>& prefix, int64_t begin, int64_t end,
                 std::vector<TensorBox>& boxes) {
  if (begin >= end) return;
  const size_t dim = prefix.size();
  const auto emit = [&](int64_t first, int64_t count) {
    TensorBox box{prefix, std::vector<int64_t>(dim, 1)};
    if (dim < shape.size()) {
      box.start.push_back(first);
      box.shape.push_back(count);
      for (size_t d = dim + 1; d < shape.size(); ++d) {
        box.start.push_back(0);
        box.shape.push_back(shape[d]);
      }
    }
    boxes.push_back(std::move(box));
  };
  if (dim == shape.size()) return emit(0, 1);
  const int64_t row = ElementCount(shape.subspan(dim + 1));
  const int64_t first = begin / row;
  const int64_t last = end / row;
  const auto within = [&](int64_t index, int64_t from, int64_t to) {
    std::vector<int64_t> inner = prefix;
    inner.push_back(index);
    AppendBoxes(shape, inner, from, to, boxes);
  };
  if (begin % row == 0 && end % row == 0) return emit(first, last - first);
  if (first == last) return within(first, begin % row, end % row);
  int64_t whole = first;
  if (begin % row != 0) within(whole++, begin % row, row);
  if (last > whole) emit(whole, last - whole);
  if (end % row != 0) within(last, 0, end % row);
}

}  // namespace

TensorBox WholeTensor(std::vector<int64_t> shape) {
  std::vector<int64_t> start(shape.size(), 0);
  return {std::move(start), std::move(shape)};
}

absl::Status CheckShape(absl::Span<const int64_t> shape) {
  bool empty = false;
  for (const int64_t size : shape) {
    if (size < 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "shape [", absl::StrJoin(shape, ", "), "] has a negative size"));
    }
    empty = empty || size == 0;
  }
  int64_t count = 1;
  for (const int64_t size : shape) {
    if (!empty && size > kElementsMax / count) {
      return absl::InvalidArgumentError(absl::StrCat(
          "shape [", absl::StrJoin(shape, ", "), "] is past 2^56 elements"));
    }
    if (!empty) count *= size;
  }
  return absl::OkStatus();
}

int64_t ElementCount(absl::Span<const int64_t> shape) {
  // Sizes next to a zero are unbounded: their product must not be taken.
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
  return std::accumulate(shape.begin(), shape.end(), int64_t{1},
                         std::multiplies<int64_t>());
}

std::string FormatBox(const TensorBox& box) {
  std::string text = "[";
  for (size_t d = 0; d < box.start.size(); ++d) {
    absl::StrAppend(&text, d == 0 ? "" : ", ", box.start[d], ":",
                    box.start[d] + box.shape[d]);
  }
  return text + "]";
}

absl::optional<TensorBox> Intersect(const TensorBox& a, const TensorBox& b) {
  CHECK_EQ(a.start.size(), b.start.size());
  TensorBox both;
  for (size_t d = 0; d < a.start.size(); ++d) {
    const int64_t start = std::max(a.start[d], b.start[d]);
    const int64_t end =
        std::min(a.start[d] + a.shape[d], b.start[d] + b.shape[d]);
    if (start >= end) return absl::nullopt;
    both.start.push_back(start);
    both.shape.push_back(end - start);
  }
  return both;
}

absl::Status CheckInside(const TensorBox& box,
                         absl::Span<const int64_t> shape) {
  bool inside =
      box.start.size() == shape.size() && box.shape.size() == shape.size();
  for (size_t d = 0; inside && d < shape.size(); ++d) {
    // Written so that no sum can overflow.
    inside = box.start[d] >= 0 && box.shape[d] >= 0 &&
             box.start[d] <= shape[d] &&
             box.shape[d] <= shape[d] - box.start[d];
  }
  if (inside) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "box with start [", absl::StrJoin(box.start, ", "), "] and shape [",
      absl::StrJoin(box.shape, ", "), "] is not inside a tensor of shape [",
      absl::StrJoin(shape, ", "), "]"));
}

absl::Status CheckTiling(absl::Span<const TensorBox> boxes,
                         absl::Span<const int64_t> shape) {
  uint64_t held = 0;  // may wrap, but not where the boxes are disjoint
  std::vector<const TensorBox*> sorted;
  for (const TensorBox& box : boxes) {
    RETURN_IF_ERROR(CheckInside(box, shape));
    const int64_t count = ElementCount(box.shape);
    held += static_cast<uint64_t>(count);
    if (count > 0) sorted.push_back(&box);
  }
  std::sort(sorted.begin(), sorted.end(),
            [](auto* a, auto* b) { return a->start < b->start; });
  for (size_t i = 0; i < sorted.size(); ++i) {
    const TensorBox& a = *sorted[i];
    for (size_t j = i + 1; j < sorted.size(); ++j) {
      const TensorBox& b = *sorted[j];
      // Past the end of `a` in the first dim nothing meets it any more.
      if (!shape.empty() && b.start[0] >= a.start[0] + a.shape[0]) break;
      if (Intersect(a, b).has_value()) {
        return absl::InvalidArgumentError(absl::StrCat(
            "shards ", FormatBox(a), " and ", FormatBox(b), " overlap"));
      }
    }
  }
  // Disjoint, so only the sum can differ.
  const uint64_t total = static_cast<uint64_t>(ElementCount(shape));
  if (held == total) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "shards hold ", held, " of the ", total,
      " elements of a tensor of shape [", absl::StrJoin(shape, ", "), "]"));
}

std::vector<TensorBox> BoxesOfRange(absl::Span<const int64_t> shape,
                                    const FlatRange& range) {
  CHECK(range.begin >= 0 && range.count >= 0 &&
        range.begin + range.count <= ElementCount(shape))
      << range.begin << "+" << range.count;
  std::vector<TensorBox> boxes;
  AppendBoxes(shape, {}, range.begin, range.begin + range.count, boxes);
  return boxes;
}

// A range is of the last dims that are whole, times the region's width in the
// dim before them.
std::vector<FlatRange> RangesOfBox(const TensorBox& region,
                                   const TensorBox& box) {
  CHECK(Contains(box, region)) << FormatBox(region);
  if (ElementCount(region.shape) == 0) return {};
  size_t outer = region.shape.size();  // dims before those of a range
  int64_t count = 1;
  while (outer > 0) {
    --outer;
    count *= region.shape[outer];
    if (region.shape[outer] != box.shape[outer]) break;
  }
  std::vector<FlatRange> ranges(ElementCount(region.shape) / count);
  std::vector<int64_t> at = region.start;
  for (FlatRange& range : ranges) {
    range = {.begin = OffsetIn(box, at), .count = count};
    for (size_t d = outer; d-- > 0;) {
      if (++at[d] < region.start[d] + region.shape[d]) break;
      at[d] = region.start[d];
    }
  }
  return ranges;
}

void CopyBox(const CopyBoxArgs& args) {
  const TensorBox& region = args.region;
  CHECK(Contains(args.from_box, region)) << FormatBox(region);
  CHECK(Contains(args.to_box, region)) << FormatBox(region);
  if (ElementCount(region.shape) == 0) return;
  const size_t dims = region.shape.size();
  const int64_t row = dims == 0 ? 1 : region.shape.back();
  const int64_t rows = ElementCount(region.shape) / row;
  std::vector<int64_t> at = region.start;
  for (int64_t r = 0; r < rows; ++r) {
    memcpy(args.to + OffsetIn(args.to_box, at) * args.element_bytes,
           args.from + OffsetIn(args.from_box, at) * args.element_bytes,
           static_cast<size_t>(row * args.element_bytes));
    for (int d = static_cast<int>(dims) - 2; d >= 0; --d) {
      if (++at[d] < region.start[d] + region.shape[d]) break;
      at[d] = region.start[d];
    }
  }
}

}  // namespace troupe
