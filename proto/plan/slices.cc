#include "proto/plan/slices.h"

#include <algorithm>
#include <utility>

#include "proto/base/check.h"
#include "proto/plan/mesh.h"
#include "proto/plan/tensor_spec.h"

namespace troupe {
namespace {

// A range of one dim that a rank has in one piece.
struct DimRun {
  Range whole;
  int64_t local_begin = 0;
};

int64_t LengthOf(const std::vector<Range>& runs) {
  int64_t length = 0;
  for (const Range& run : runs) length += run.size();
  return length;
}

// What a place has of [0, length), one run or two.
std::vector<Range> PartsOf(int64_t length, const Piece& piece, bool zigzag) {
  if (!zigzag) return {PieceOf(length, piece)};
  const int pieces = 2 * piece.count;
  return {
      PieceOf(length, {.index = piece.index, .count = pieces}),
      PieceOf(length, {.index = pieces - 1 - piece.index, .count = pieces})};
}

// Adds to `to` the things number [part.begin, part.end) of those in `runs`.
void AppendPart(const std::vector<Range>& runs, const Range& part,
                std::vector<Range>& to) {
  int64_t before = 0;
  for (const Range& run : runs) {
    const int64_t offset = run.begin - before;
    const Range whole = {std::max(part.begin, before) + offset,
                         std::min(part.end, before + run.size()) + offset};
    before += run.size();
    if (whole.size() <= 0) continue;
    if (!to.empty() && to.back().end == whole.begin) {
      to.back().end = whole.end;
    } else {
      to.push_back(whole);
    }
  }
}

std::vector<DimRun> RunsOf(const Dim& dim, const MeshPlace& place) {
  std::vector<DimRun> runs;
  int64_t whole_begin = 0;
  int64_t local_begin = 0;
  for (const Dim::Section& section : dim.sections()) {
    const Range piece = SectionPiece(section, place);
    const Range whole = {whole_begin + piece.begin * section.width(),
                         whole_begin + piece.end * section.width()};
    DimRun* const last = runs.empty() ? nullptr : &runs.back();
    if (last != nullptr && last->whole.end == whole.begin &&
        last->local_begin + last->whole.size() == local_begin) {
      last->whole.end = whole.end;
    } else if (whole.size() > 0) {
      runs.push_back({whole, local_begin});
    }
    whole_begin += WholeCount(section) * section.width();
    local_begin += SectionSize(section);
  }
  return runs;
}

// Appends the runs of a box: of dims before `dim` that of `at`, one index each,
// is chosen, its `whole` and `local` counted in such indices.
void AppendRuns(const ParameterBox& box, const std::vector<int64_t>& whole,
                const std::vector<int64_t>& local, size_t dim,
                const SliceRun& at, std::vector<SliceRun>& runs) {
  const Range& range = box.whole[dim];
  SliceRun run = {.whole = at.whole * whole[dim] + range.begin,
                  .local = at.local * local[dim] + box.local_begin[dim],
                  .count = 1};
  if (dim + 1 == whole.size()) {
    run.count = range.size();
    if (run.count > 0) AppendRun(run, runs);
    return;
  }
  for (int64_t i = 0; i < range.size(); ++i, ++run.whole, ++run.local) {
    AppendRuns(box, whole, local, dim + 1, run, runs);
  }
}

}  // namespace

Piece MeshPlace::On(absl::string_view axis) const {
  if (mesh == nullptr) return {};
  return {.index = CoordinateOn(*mesh, axis, rank),
          .count = AxisSize(*mesh, axis)};
}

int64_t WholeCount(const Dim::Section& section) {
  return section.cuts().empty() ? section.count() : section.cuts(0).whole();
}

int64_t WholeColumns(const TensorSpec& tensor) {
  int64_t columns = 0;
  for (const Dim::Section& section :
       tensor.dims(tensor.dims_size() - 1).sections()) {
    columns += WholeCount(section) * section.width();
  }
  return columns;
}

const Dim::Section::Cut* CutBy(const Dim::Section& section,
                               absl::string_view axis) {
  for (const Dim::Section::Cut& cut : section.cuts()) {
    if (cut.axis() == axis) return &cut;
  }
  return nullptr;
}

std::vector<Range> SectionRuns(const Dim::Section& section,
                               const MeshPlace& place) {
  std::vector<Range> runs = {{0, WholeCount(section)}};
  for (const Dim::Section::Cut& cut : section.cuts()) {
    if (cut.rows()) continue;
    const Piece piece = place.On(cut.axis());
    std::vector<Range> left;
    for (const Range& part : PartsOf(LengthOf(runs), piece, cut.zigzag())) {
      AppendPart(runs, part, left);
    }
    runs = std::move(left);
  }
  return runs;
}

Range SectionPiece(const Dim::Section& section, const MeshPlace& place) {
  const std::vector<Range> runs = SectionRuns(section, place);
  CHECK_EQ(runs.size(), 1u) << "of a section in zigzag order";
  return runs.front();
}

Range PieceOf(int64_t whole, const Piece& piece) {
  if (whole >= piece.count) return EvenPiece(whole, piece);
  const int64_t one = piece.index * whole / piece.count;
  return {one, one + 1};
}

int64_t LargestPiece(int64_t whole, int places) {
  return (whole + places - 1) / places;
}

int CopiesOfPiece(int64_t whole, int places) {
  return whole >= places ? 1 : static_cast<int>(places / whole);
}

std::vector<int64_t> WholeShape(const Parameter& parameter) {
  std::vector<int64_t> shape;
  for (const Dim& dim : parameter.dims()) {
    int64_t size = 0;
    for (const Dim::Section& section : dim.sections()) {
      size += WholeCount(section) * section.width();
    }
    shape.push_back(size);
  }
  return shape;
}

std::vector<int64_t> LocalShape(const Parameter& parameter) {
  std::vector<int64_t> shape;
  for (const Dim& dim : parameter.dims()) shape.push_back(DimSize(dim));
  return shape;
}

int64_t LocalElements(const Parameter& parameter) {
  int64_t elements = 1;
  for (const Dim& dim : parameter.dims()) elements *= DimSize(dim);
  return elements;
}

std::vector<ParameterBox> BoxesOf(const Parameter& parameter,
                                  const MeshPlace& place) {
  std::vector<ParameterBox> boxes = {{}};
  for (const Dim& dim : parameter.dims()) {
    const std::vector<DimRun> runs = RunsOf(dim, place);
    std::vector<ParameterBox> longer;
    for (const ParameterBox& box : boxes) {
      for (const DimRun& run : runs) {
        longer.push_back(box);
        longer.back().whole.push_back(run.whole);
        longer.back().local_begin.push_back(run.local_begin);
      }
    }
    boxes = std::move(longer);
  }
  return boxes;
}

Range RangeOfPart(const Unit& unit, int part) {
  Range range;
  for (int p = 0; p <= part; ++p) {
    range.begin = range.end;
    range.end += unit.parts(p).elements();
  }
  return range;
}

std::vector<SliceRun> RunsOf(const Parameter& parameter,
                             const MeshPlace& place) {
  const std::vector<int64_t> whole = WholeShape(parameter);
  const std::vector<int64_t> local = LocalShape(parameter);
  std::vector<SliceRun> runs;
  for (const ParameterBox& box : BoxesOf(parameter, place)) {
    AppendRuns(box, whole, local, 0, {.count = 1}, runs);
  }
  return runs;
}

std::vector<SliceRun> RowsOn(const TensorSpec& tensor, const MeshPlace& place) {
  const Dim::Section& positions = tensor.dims(1).sections(0);
  const std::vector<Range> pieces = SectionRuns(positions, place);
  const int64_t first_sample =
      SectionPiece(tensor.dims(0).sections(0), place).begin;
  const int64_t of_sample = LengthOf(pieces);
  const int64_t rows = DimSize(tensor.dims(0)) * DimSize(tensor.dims(1));
  int64_t before = 0;  // of the rows that are left where each sample is cut
  for (const Dim::Section::Cut& cut : positions.cuts()) {
    if (cut.rows()) before = rows * place.On(cut.axis()).index;
  }
  std::vector<SliceRun> runs;
  for (int64_t local = 0; local < rows;) {
    const int64_t sample = (before + local) / of_sample;
    int64_t position = (before + local) % of_sample;
    auto piece = pieces.begin();
    for (; position >= piece->size(); ++piece) position -= piece->size();
    const SliceRun run = {
        .whole = (first_sample + sample) * WholeCount(positions) +
                 piece->begin + position,
        .local = local,
        .count = std::min(rows - local, piece->size() - position)};
    AppendRun(run, runs);
    local += run.count;
  }
  return runs;
}

void AppendRun(const SliceRun& run, std::vector<SliceRun>& runs) {
  SliceRun* const last = runs.empty() ? nullptr : &runs.back();
  if (last != nullptr && last->whole + last->count == run.whole &&
      last->local + last->count == run.local) {
    last->count += run.count;
  } else {
    runs.push_back(run);
  }
}

}  // namespace troupe
