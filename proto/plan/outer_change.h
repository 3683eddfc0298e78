// How a rank lays out what it exchanges of a unit with other islands: its
// buffer OUTER_GRADIENTS, from OUTER_GRADIENT over OUTER_REDUCE to OUTER_STEP
// (docs/islands.md).
//
// Exchanged are all elements that the rank steps of the unit, of its stretches
// at rest (at_rest.h) one behind the other, in f32. Without compression they
// are summed in place:
//
//   | elements |
//
// Compressed, they are cut into as many even pieces as there are islands, of
// whole blocks. Each island sums one piece of all in f32, in the order of the
// islands, compresses the mean and hands it to all:
//
//   | own pieces, then the means | piece of each island | f32 sum | f32 of one
//   |
#ifndef TROUPE_PROTO_PLAN_OUTER_CHANGE_H_
#define TROUPE_PROTO_PLAN_OUTER_CHANGE_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "proto/plan.pb.h"

namespace troupe {

inline constexpr char kUncompressed[] = "none";
inline constexpr char kAsBf16[] = "bf16";
inline constexpr char kAsInt4[] = "int4";

// A piece has whole blocks of this number of elements, each with a scale in
// int4.
inline constexpr int64_t kChangeBlock = 64;

// Bytes of compressed elements: whole blocks.
int64_t CompressedBytes(absl::string_view compress, int64_t elements);

struct ChangeLayout {
  int64_t elements = 0;
  bool compressed = false;
  int islands = 1;
  // Of a compressed one; a last piece may have fewer elements, or none.
  int64_t piece_elements = 0;
  int64_t piece_bytes = 0;

  // First bytes of the parts, and the end of the last.
  int64_t pieces_bytes() const { return islands * piece_bytes; }
  int64_t received() const { return pieces_bytes(); }
  int64_t sum() const { return 2 * pieces_bytes(); }
  int64_t one() const { return sum() + 4 * piece_elements; }
  int64_t bytes() const {
    return compressed ? one() + 4 * piece_elements : 4 * elements;
  }
  // Elements of a piece.
  int64_t ElementsOf(int piece) const;
};

// Of `elements` elements. REQUIRES a resolved job.
ChangeLayout LayChange(const JobSpec& job, int64_t elements);

// What a rank of the placement's role, of which `rank` is one, exchanges of the
// unit, at most.
ChangeLayout LargestChange(const Plan& plan, const Placement& placement,
                           int rank);
// What OUTER_GRADIENT and OUTER_STEP of it work in: this number of elements at
// a time is compressed, or made f32 again.
inline constexpr int64_t kChangeWindow = int64_t{1} << 18;
int64_t ChangeWorkspaceBytes(const Plan& plan, const Placement& placement,
                             int rank);

// Bytes that all islands sum: each rank sends as many as in an all-reduce of
// them.
int64_t ChangeBytesReduced(const ChangeLayout& layout);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_OUTER_CHANGE_H_
