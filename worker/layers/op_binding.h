// An op among its neighbours: what a layer is made from. Turns the names of
// operands into places, once.
#ifndef TROUPE_WORKER_LAYERS_OP_BINDING_H_
#define TROUPE_WORKER_LAYERS_OP_BINDING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "ops/token_rows.h"
#include "proto/plan/ops/op_view.h"
#include "proto/plan/parameter_of.h"
#include "proto/plan/place_unit.h"
#include "proto/plan/slices.h"
#include "proto/plan/sums.h"
#include "proto/unit.pb.h"
#include "worker/layers/layer.h"
#include "worker/layers/mask_source.h"
#include "worker/layers/operand_place.h"
#include "worker/layers/parameter_place.h"

namespace troupe {

// A unit with the table of what it does and the places that follow from that.
struct UnitBinding {
  const UnitTable& table;
  const UnitPlaces& places;
  const Unit& unit;
  const std::vector<Unit>& units;  // of the model, for tied parameters
  uint64_t seed = 0;               // of the job
  MeshPlace place;                 // this rank's
  const Sums* sums = nullptr;      // Plan.sums; null: nothing is added up
  int index = 0;                   // of the unit in the plan
  // By port (proto/plan/ports.h): where in BATCH what the table reads of it is.
  std::vector<int64_t> batch_offsets = {};
};

// Where an op adds to one of the plan's sums.
class SumTarget {
 public:
  SumTarget() = default;
  SumTarget(const SumPlace& place, bool adds) : place_(place), adds_(adds) {}

  // f64 [elements], to be added to. CHECKs that the plan has the sum and that
  // the call brings SCALARS.
  Tensor In(const LayerCall& call) const;
  // Whether this rank is the one to add of those that have the same rows.
  bool adds() const { return adds_; }

 private:
  SumPlace place_;  // no elements: there is none
  bool adds_ = true;
};

// Where the documents of each sequence begin (ops/documents.h).
class Documents {
 public:
  Documents() = default;
  Documents(const OperandPlace& place, const Range& samples)
      : place_(place), samples_(samples) {}

  // [batch, positions of a whole sequence]; not defined where there are none,
  // and for generated text, which is one document.
  Tensor In(const LayerCall& call) const {
    if (!place_.exists() || call.decoding.count > 0) return Tensor();
    return place_.In(call).Slice(0, samples_.begin, samples_.end);
  }

 private:
  OperandPlace place_;
  Range samples_;
};

// Borrows all.
class OpBinding {
 public:
  OpBinding(const UnitBinding& unit, int op) : unit_(unit), index_(op) {}

  const Op& op() const { return unit_.table.ops(index_); }
  // Which of the ranks along all these axes, outermost first, this one is.
  int RankAlong(const std::vector<std::string>& axes) const;
  const OpPlaces& places() const { return unit_.places.ops[index_]; }
  // Specs of operands.
  OpView view() const { return {unit_.table, op()}; }

  // Nowhere, too, where the op has no operand of that name.
  OperandPlace Input(absl::string_view name) const;
  OperandPlace Output(absl::string_view name) const;
  OperandPlace InputGradient(absl::string_view name) const;
  OperandPlace AddedGradient(absl::string_view name) const;
  OperandPlace OutputGradient(absl::string_view name) const;
  OperandPlace BackwardInput(absl::string_view name) const;
  OperandPlace BackwardInputGradient(absl::string_view name) const;

  // The fused op of this kind that makes an input, or reads an output.
  absl::optional<OpBinding> FusedMaker(absl::string_view input,
                                       Op::Kind kind) const;
  absl::optional<OpBinding> FusedReader(absl::string_view output,
                                        Op::Kind kind) const;

  // One of those that the kind declares (OpRules.sums).
  SumTarget Sum(absl::string_view name) const;

  // Of the op's parameters the index'th. InvalidArgument where the plan gives
  // it another shape than `shape`, in which -1 stands for any number, or a
  // dtype that no kernel computes with.
  absl::StatusOr<ParameterPlace> Parameter(
      int index, const std::vector<int64_t>& shape) const;
  // REQUIRES that Parameter has found it.
  const troupe::Parameter& ParameterSpec(int index) const {
    return ParameterOf(unit_.units, unit_.unit, op().parameters(index));
  }

  // This rank's.
  const MeshPlace& place() const { return unit_.place; }
  // Of a section that an axis may cut, what this rank has.
  Range Piece(const Dim::Section& section) const {
    return SectionPiece(section, unit_.place);
  }
  // Of an input [batch, sequence, ...], which positions of each sequence are
  // here: as few runs as there can be.
  std::vector<SliceRun> Positions(absl::string_view input) const;
  // Of an input [batch, sequence, ...], which sequence each row here is of.
  // Sequences are numbered from the first of the rank's part of the batch.
  TokenRows RowsOfSequences(absl::string_view input) const;
  // Of a tensor of the batch, an input, the samples that the op computes rows
  // of (OpRules.batch_rows): it is loaded for neighbours, too, where an axis
  // cuts rows but no batch.
  Range SamplesOf(absl::string_view batch) const;
  // The input "documents", of these samples; where the op has none, it is an
  // empty tensor in each call.
  Documents DocumentsHere() const;
  // Where `output` is a sum over ranks, whether this one adds what is to be
  // added once.
  bool AddsOnce(absl::string_view output) const;
  // The same for what is added for each row of an input: of ranks that have the
  // same rows, whether this is the first.
  bool AddsForRowsOf(absl::string_view input) const;

  // The op's own mask; and that of the fused DROPOUT which makes an input.
  // Neither masks anything where there is none.
  MaskSource OwnMask() const;
  MaskSource MaskOf(absl::string_view input) const;

 private:
  OperandPlace At(const TensorPlace& place) const {
    return OperandPlace(unit_.table, place);
  }
  OperandPlace GradientAt(const TensorPlace& place) const {
    return OperandPlace::OfGradient(unit_.table, place);
  }

  UnitBinding unit_;
  int index_;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_LAYERS_OP_BINDING_H_
