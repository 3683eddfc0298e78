#include "worker/rank/unit_state.h"

#include <algorithm>
#include <utility>

#include "proto/base/check.h"
#include "proto/plan/at_rest.h"
#include "proto/plan/optimizer_states.h"

namespace troupe {
namespace {

// What the rank has of one flat buffer: `wanted` of it, of which `held` is in
// memory.
struct FlatPart {
  Range held;
  Range wanted;
  DType type = DType::kF32;
};

// That in which a parameter lies.
const Unit::Part& PartWith(const Unit& unit, const Parameter& parameter) {
  int64_t end = 0;
  for (const Unit::Part& part : unit.parts()) {
    end += part.elements();
    if (parameter.offset() < end) return part;
  }
  CHECK(false) << parameter.name() << " is in no part of its unit";
  return unit.parts(0);
}

// Of a row-major tensor.
std::vector<int64_t> StridesOf(const std::vector<int64_t>& shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t d = shape.size() - 1; d-- > 0;) {
    strides[d] = strides[d + 1] * shape[d + 1];
  }
  return strides;
}

// Of what the rank has of a box of the whole tensor, what lies in a box of the
// rank's own; nothing where that is empty.
absl::optional<StateBox> BoxIn(const ParameterBox& box, const TensorBox& own,
                               const std::vector<int64_t>& strides) {
  TensorBox local = {.start = box.local_begin, .shape = {}};
  for (const Range& range : box.whole) local.shape.push_back(range.size());
  absl::optional<TensorBox> both = Intersect(local, own);
  if (!both.has_value()) return absl::nullopt;
  StateBox state;
  state.strides = strides;
  for (size_t d = 0; d < strides.size(); ++d) {
    state.begin += both->start[d] * strides[d];
  }
  state.whole = *std::move(both);
  for (size_t d = 0; d < box.whole.size(); ++d) {
    state.whole.start[d] += box.whole[d].begin - box.local_begin[d];
  }
  return state;
}

// A parameter or a state of one, as it lies in a flat buffer.
struct Lies {
  std::string name;
  const Parameter& shape;
  Range within;       // its elements that are wanted
  int64_t first = 0;  // of the buffer: where its element 0 is, or would be
};

void AddTensor(const Lies& lies, const MeshPlace& place, const FlatPart& part,
               const TierAddress& memory, std::vector<StateTensor>& tensors) {
  if (lies.within.size() <= 0) return;
  const std::vector<int64_t> shape = LocalShape(lies.shape);
  const std::vector<TensorBox> pieces = BoxesOfRange(
      shape, {.begin = lies.within.begin, .count = lies.within.size()});
  StateTensor tensor;
  tensor.name = lies.name;
  tensor.shape = WholeShape(lies.shape);
  tensor.data = memory;
  tensor.type = part.type;
  for (const ParameterBox& box : BoxesOf(lies.shape, place)) {
    for (const TensorBox& piece : pieces) {
      absl::optional<StateBox> state = BoxIn(box, piece, StridesOf(shape));
      if (!state.has_value()) continue;
      state->begin += lies.first;
      tensor.elements += state->rows() * state->columns();
      tensor.boxes.push_back(*std::move(state));
    }
  }
  if (!tensor.boxes.empty()) tensors.push_back(std::move(tensor));
}

// Of a state of a unit, what belongs to one parameter.
Lies StateLies(const UnitState& unit_state, const ParameterState& state,
               std::string name, const FlatPart& part) {
  const StatePiece& piece = state.piece;
  const int64_t begin = part.held.begin;
  return {.name = std::move(name),
          .shape = state.shape,
          .within = {piece.Before(part.wanted.begin),
                     piece.Before(part.wanted.end)},
          .first = unit_state.ElementsIn({begin, piece.range.begin}) -
                   piece.Before(begin)};
}

// Of a row of a box, where each dim before the last has these strides.
int64_t OffsetOfRow(const TensorBox& box, const std::vector<int64_t>& strides,
                    int64_t row) {
  int64_t offset = 0;
  for (size_t d = box.shape.size() - 1; d-- > 0;) {
    offset += row % box.shape[d] * strides[d];
    row /= box.shape[d];
  }
  return offset;
}

}  // namespace

int64_t StateBox::rows() const {
  int64_t rows = 1;
  for (size_t d = 0; d + 1 < whole.shape.size(); ++d) rows *= whole.shape[d];
  return rows;
}

int64_t StateBox::RowOffset(int64_t row) const {
  return OffsetOfRow(whole, strides, row);
}

bool StateBox::dense() const {
  int64_t behind = columns();
  for (size_t d = whole.shape.size() - 1; d-- > 0;) {
    if (whole.shape[d] > 1 && strides[d] != behind) return false;
    behind *= whole.shape[d];
  }
  return true;
}

std::vector<StateTensor> UnitStateTensors(const OptimizerSpec& optimizer,
                                          const Unit& unit,
                                          const UnitFlatBuffers& memory,
                                          const MeshPlace& place,
                                          const absl::optional<Range>& range) {
  const Range held = memory.holds.value_or(Range{0, unit.flat_elements()});
  FlatPart part = {.held = held,
                   .wanted = range.value_or(held),
                   .type = memory.parameters_type};
  std::vector<StateTensor> tensors;
  for (const Parameter& parameter : unit.parameters()) {
    const int64_t offset = parameter.offset();
    AddTensor(
        {.name = parameter.name(),
         .shape = parameter,
         .within = Both({part.wanted.begin - offset, part.wanted.end - offset},
                        {0, LocalElements(parameter)}),
         .first = offset - part.held.begin},
        place, part, memory.parameters, tensors);
  }
  if (!memory.optimizer_state) return tensors;
  TierAddress flat = memory.optimizer_state;
  const std::vector<UnitState> states = UnitStates(optimizer, unit);
  part.type = DType::kF32;
  for (size_t s = 0; s < states.size(); ++s) {
    for (const Parameter& parameter : unit.parameters()) {
      const Unit::Part& with = PartWith(unit, parameter);
      const auto names = StatesOfPart(optimizer, with);
      if (s >= names.size()) continue;
      const auto state =
          StateOfParameter(optimizer, with.rule(), names[s], parameter);
      if (!state.has_value()) continue;
      AddTensor(StateLies(states[s], *state,
                          StateTensorName(names[s], parameter.name()), part),
                place, part, flat, tensors);
    }
    flat =
        flat + states[s].ElementsIn(held) * static_cast<int64_t>(sizeof(float));
  }
  return tensors;
}

std::vector<SliceRun> RunsWithin(const StateTensor& tensor, int64_t begin,
                                 int64_t end) {
  const std::vector<int64_t> strides = StridesOf(tensor.shape);
  std::vector<SliceRun> runs;
  for (const StateBox& box : tensor.boxes) {
    int64_t first = 0;  // element of the whole
    for (size_t d = 0; d < strides.size(); ++d) {
      first += box.whole.start[d] * strides[d];
    }
    // Rows lie in the order of the whole tensor: the first that ends behind
    // `begin`.
    const auto whole_at = [&](int64_t row) {
      return first + OffsetOfRow(box.whole, strides, row);
    };
    int64_t row = 0;
    for (int64_t above = box.rows(); row < above;) {
      const int64_t middle = row + (above - row) / 2;
      if (whole_at(middle) + box.columns() <= begin) {
        row = middle + 1;
      } else {
        above = middle;
      }
    }
    for (; row < box.rows() && whole_at(row) < end; ++row) {
      const int64_t row_whole = whole_at(row);
      const int64_t from = std::max(begin, row_whole);
      const int64_t to = std::min(end, row_whole + box.columns());
      AppendRun({.whole = from,
                 .local = box.begin + box.RowOffset(row) + from - row_whole,
                 .count = to - from},
                runs);
    }
  }
  return runs;
}

}  // namespace troupe
