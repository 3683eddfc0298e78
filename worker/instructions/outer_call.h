// What OUTER_GRADIENT, OUTER_REDUCE and OUTER_STEP have in common: what the
// rank exchanges of the unit, and the form in which it goes to other islands
// (proto/plan/outer_change.h).
#ifndef TROUPE_WORKER_INSTRUCTIONS_OUTER_CALL_H_
#define TROUPE_WORKER_INSTRUCTIONS_OUTER_CALL_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "proto/plan/layout.h"
#include "proto/plan/outer_change.h"
#include "worker/instructions/call.h"
#include "worker/model/outer_optimizer.h"

namespace troupe {

// Of this rank, which may have less than others of its role.
ChangeLayout ChangeOf(const Call& call);

// Of the weights and states among the operands.
std::vector<OuterPiece> OuterPiecesOf(const Call& call);

// Of a compressed change, runs of elements of one piece, as many at a time as
// the workspace has room for: which elements of all that is exchanged, and
// where they lie in the piece's compressed form, in the first part of the
// buffer.
struct ChangeWindow {
  Range window;
  int64_t offset = 0;  // bytes
};
void ForChangeWindows(const Call& call, const ChangeLayout& layout,
                      absl::FunctionRef<void(const ChangeWindow&)> run);

// f32 into the compressed form and back, of whole blocks from `compressed` on.
void Compress(const Call& call, float* elements, int64_t count,
              char* compressed);
void Expand(const Call& call, char* compressed, int64_t count, float* elements);

}  // namespace troupe

#endif  // TROUPE_WORKER_INSTRUCTIONS_OUTER_CALL_H_
