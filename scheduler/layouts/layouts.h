// Where the tensors of a unit lie over ranks: a row says which dims, by what
// they are, an axis of the mesh cuts. Everything else follows: what each rank
// computes (proto/plan/ops, the kinds' cuts), which exchanges stand between
// (cut_units.h), bytes and memory. Rows compose, as each only says where things
// lie; where two of one axis want to cut a tensor, the first in the table does.
//
// To add one: a file like tensor_1d.cc, one line in the table, a golden.
#ifndef TROUPE_SCHEDULER_LAYOUTS_LAYOUTS_H_
#define TROUPE_SCHEDULER_LAYOUTS_LAYOUTS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "proto/job.pb.h"
#include "proto/plan/unit_list.h"
#include "proto/unit.pb.h"

namespace troupe {

// What an axis does to dims of a kind.
struct DimRule {
  Dim::Kind kind = Dim::KIND_UNSPECIFIED;
  // The field that says how many there are, for whoever asks for a cut that
  // does not fit.
  absl::string_view field;
  // Sizes that the axis does not divide: refused, but for one of
  bool pads = false;    // the last ranks have less, and padding behind it
  bool shares = false;  // where there are fewer than ranks, neighbours have the
                        // same one
  // Batches are loaded so, in front of what other axes cut; else a sequence is
  // cut by the rows of all samples as one.
  bool loaded = false;
  // Each rank has two pieces, one from either end.
  bool zigzag = false;
  // Nothing rests so; ops that cannot compute on what the other rules leave
  // have their operands turned to lie so.
  bool turned = false;
};

// An axis of the mesh, where it is cut along.
struct AxisSpan {
  std::string name;
  int size = 1;
  double slack = 1;  // "expert": parallelism.expert_slack
};

struct LayoutRow {
  absl::string_view name;
  absl::string_view axis;
  bool (*used)(const ParallelismSpec& parallelism);
  std::vector<DimRule> rules;
  // Optional: before any axis cuts them, makes ops that its cuts need of
  // others.
  void (*prepare)(const AxisSpan& axis, UnitList& units) = nullptr;
  // Optional: of a table that is cut so, makes several ops of one that needs
  // what other ranks have, with exchanges between.
  void (*rewrite)(const AxisSpan& axis, UnitTable& table) = nullptr;
  // Optional: the same of a table that all axes have cut.
  void (*finish)(const AxisSpan& axis, UnitTable& table) = nullptr;
};

// Columns within attention and the MLP, and those of the logits.
std::vector<DimRule> RulesOfInnerColumns();

LayoutRow Batch();
LayoutRow Experts();
LayoutRow Tensor1D();
LayoutRow Tensor2DRows();
LayoutRow Tensor2DColumns();
LayoutRow Tensor25DDepth();
LayoutRow Tensor3DRows();
LayoutRow Tensor3DInner();
LayoutRow Tensor3DHidden();
LayoutRow Sequence();
LayoutRow Ulysses();
LayoutRow UlyssesInRings();
LayoutRow RingAttention();
LayoutRow RingSelfAttention();

// All there are.
const std::vector<LayoutRow>& Layouts();

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_LAYOUTS_LAYOUTS_H_
