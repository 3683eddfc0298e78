// Which part of a parameter or tensor a rank has, where axes of the mesh cut
// it.
//
// A section that is cut is a number of heads, columns, positions or rows of a
// table. Each place on the axis has a piece of them, as even as can be, or,
// where there are fewer than places, one, which neighbours then share: rank i
// of k has number floor(i whole / k). In zigzag order it has two, the i-th and
// the i-th last of 2 k. Where several axes cut it, each cuts what the one before
// has left. In memory all ranks have as much as the one that has most; what a
// piece lacks is padding behind it, which holds zeros.
//
//   for (const ParameterBox& box : BoxesOf(parameter, {mesh, rank})) ...
#ifndef TROUPE_PROTO_PLAN_SLICES_H_
#define TROUPE_PROTO_PLAN_SLICES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "proto/plan.pb.h"
#include "proto/plan/layout.h"

namespace troupe {

// A rank of a mesh; nothing is cut for one without a mesh.
struct MeshPlace {
  const Mesh* mesh = nullptr;
  int rank = 0;

  // Its place on an axis, and how many there are.
  Piece On(absl::string_view axis) const;
};

// How many there are on all ranks together.
int64_t WholeCount(const Dim::Section& section);
// Elements of the last dim, of all ranks together.
int64_t WholeColumns(const TensorSpec& tensor);

// The cut of it by this axis; none: nullptr.
const Dim::Section::Cut* CutBy(const Dim::Section& section,
                               absl::string_view axis);

// Of a section that is cut, the ones that a place has, numbered as in the
// whole: runs in the order in which they lie. All of them where it is not cut.
// Cuts of rows are not counted: what they leave is no piece of each sample
// (RowsOn).
std::vector<Range> SectionRuns(const Dim::Section& section,
                               const MeshPlace& place);
// The same as one run. REQUIRES that none of its cuts is in zigzag order.
Range SectionPiece(const Dim::Section& section, const MeshPlace& place);

// The same of any number of things.
Range PieceOf(int64_t whole, const Piece& piece);

// The most that any of `places` places has: `count` of the section then.
int64_t LargestPiece(int64_t whole, int places);
// How many neighbours have the same.
int CopiesOfPiece(int64_t whole, int places);

// The whole tensor, and what a rank has of it.
std::vector<int64_t> WholeShape(const Parameter& parameter);
std::vector<int64_t> LocalShape(const Parameter& parameter);
int64_t LocalElements(const Parameter& parameter);

// The elements of a unit's flat buffer that are one of its parts.
Range RangeOfPart(const Unit& unit, int part);

// A box of the whole tensor that is a box of the rank's, too.
struct ParameterBox {
  std::vector<Range> whole;  // by dim
  std::vector<int64_t> local_begin;
};
// Those that together are all that the rank has, in the order of the whole's
// elements. Of a tensor that is not cut, one.
std::vector<ParameterBox> BoxesOf(const Parameter& parameter,
                                  const MeshPlace& place);

// Elements, or rows, that lie behind one another in the whole tensor and in the
// rank's.
struct SliceRun {
  int64_t whole = 0;  // the first; row-major
  int64_t local = 0;
  int64_t count = 0;
};
// What both can be copied in: all that the rank has, box by box.
std::vector<SliceRun> RunsOf(const Parameter& parameter,
                             const MeshPlace& place);
// Of a tensor [batch, sequence, ...], the rows that the rank has of batch and
// sequence together.
std::vector<SliceRun> RowsOn(const TensorSpec& tensor, const MeshPlace& place);
// Behind the others, as one with the last where it goes on there.
void AppendRun(const SliceRun& run, std::vector<SliceRun>& runs);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_SLICES_H_
