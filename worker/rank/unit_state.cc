#include "worker/rank/unit_state.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
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

// Of what the rank has of a box of the whole tensor, what lies in a box of the
// rank's own; nothing where that is empty.
absl::optional<StateBox> BoxIn(const ParameterBox& box, const TensorBox& own,
                               int64_t stride) {
  TensorBox local = {.start = box.local_begin, .shape = {}};
  for (const Range& range : box.whole) local.shape.push_back(range.size());
  absl::optional<TensorBox> both = Intersect(local, own);
  if (!both.has_value()) return absl::nullopt;
  StateBox state;
  state.row_stride = stride;
  state.begin = both->start.back();
  if (both->start.size() > 1) state.begin += both->start[0] * stride;
  state.whole = *std::move(both);
  for (size_t d = 0; d < box.whole.size(); ++d) {
    state.whole.start[d] += box.whole[d].begin - box.local_begin[d];
  }
  return state;
}

void AddTensors(const std::string& prefix, const Unit& unit,
                const MeshPlace& place, const FlatPart& part,
                const TierAddress& memory, std::vector<StateTensor>& tensors) {
  for (const Parameter& parameter : unit.parameters()) {
    const int64_t offset = parameter.offset();
    const Range within =
        Both({part.wanted.begin - offset, part.wanted.end - offset},
             {0, LocalElements(parameter)});
    if (within.size() == 0) continue;
    const std::vector<int64_t> shape = LocalShape(parameter);
    const std::vector<TensorBox> pieces =
        BoxesOfRange(shape, {.begin = within.begin, .count = within.size()});
    StateTensor tensor;
    tensor.name = absl::StrCat(prefix, parameter.name());
    tensor.shape = WholeShape(parameter);
    tensor.data = memory;
    tensor.type = part.type;
    for (const ParameterBox& box : BoxesOf(parameter, place)) {
      for (const TensorBox& piece : pieces) {
        absl::optional<StateBox> state = BoxIn(box, piece, shape.back());
        if (!state.has_value()) continue;
        state->begin += offset - part.held.begin;
        tensor.elements += state->rows() * state->columns();
        tensor.boxes.push_back(*std::move(state));
      }
    }
    if (!tensor.boxes.empty()) tensors.push_back(std::move(tensor));
  }
}

}  // namespace

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
  AddTensors("", unit, place, part, memory.parameters, tensors);
  if (!memory.optimizer_state) return tensors;
  part.type = DType::kF32;
  TierAddress flat = memory.optimizer_state;
  for (const absl::string_view state : OptimizerStates(optimizer)) {
    AddTensors(StateTensorName(state, ""), unit, place, part, flat, tensors);
    flat = flat + part.held.size() * static_cast<int64_t>(sizeof(float));
  }
  return tensors;
}

std::vector<SliceRun> RunsWithin(const StateTensor& tensor, int64_t begin,
                                 int64_t end) {
  const int64_t width = tensor.shape.back();
  std::vector<SliceRun> runs;
  for (const StateBox& box : tensor.boxes) {
    const bool is_vector = box.whole.shape.size() == 1;
    const int64_t first_row = is_vector ? 0 : box.whole.start[0];
    const int64_t first_column = box.whole.start.back();
    const int64_t row_begin = std::max(first_row, begin / width);
    const int64_t row_end =
        std::min(first_row + box.rows(), (end + width - 1) / width);
    for (int64_t row = row_begin; row < row_end; ++row) {
      const int64_t row_whole = row * width + first_column;
      const int64_t from = std::max(begin, row_whole);
      const int64_t to = std::min(end, row_whole + box.columns());
      if (from >= to) continue;
      AppendRun({.whole = from,
                 .local = box.begin + (row - first_row) * box.row_stride +
                          from - row_whole,
                 .count = to - from},
                runs);
    }
  }
  return runs;
}

}  // namespace troupe
