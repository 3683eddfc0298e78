#include "worker/rank/unit_state.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace troupe {
namespace {

// The parts of OPTIMIZER_STATE in their order.
std::vector<std::string> StatePrefixes(const OptimizerSpec& optimizer) {
  if (optimizer.name() == "adamw") {
    return {"optimizer.exp_avg.", "optimizer.exp_avg_sq."};
  }
  return {"optimizer.momentum."};
}

// Of a tensor in memory: some of its rows, and of these some columns.
struct Rows {
  Range rows;
  Range columns;
};

Range Both(const Range& a, const Range& b) {
  const int64_t begin = std::max(a.begin, b.begin);
  return {begin, std::max(begin, std::min(a.end, b.end))};
}

// A range of elements of a tensor of so many columns: the rest of a row, whole
// rows, and the beginning of one.
std::vector<Rows> RowsOfRange(const Range& range, int64_t columns) {
  std::vector<Rows> pieces;
  int64_t at = range.begin;
  while (at < range.end) {
    const int64_t row = at / columns;
    const int64_t column = at % columns;
    const int64_t whole = column == 0 ? (range.end - at) / columns : 0;
    const int64_t count = whole > 0
                              ? whole * columns
                              : std::min(columns - column, range.end - at);
    pieces.push_back({.rows = {row, row + std::max<int64_t>(1, whole)},
                      .columns = whole > 0 ? Range{0, columns}
                                           : Range{column, column + count}});
    at += count;
  }
  return pieces;
}

// What the rank has of one flat buffer: `wanted` of it, of which `held` is in
// memory.
struct FlatPart {
  Range held;
  Range wanted;
};

// Of a box of the tensor what is in these rows; nothing where that is empty.
absl::optional<StateBox> BoxIn(const ParameterBox& box, const Rows& rows,
                               int64_t stride) {
  const bool is_vector = box.whole.size() == 1;
  const int64_t first_row = is_vector ? 0 : box.local_begin[0];
  const int64_t row_count = is_vector ? 1 : box.whole[0].size();
  const int64_t first_column = box.local_begin.back();
  const Range r = Both(rows.rows, {first_row, first_row + row_count});
  const Range c = Both(rows.columns,
                       {first_column, first_column + box.whole.back().size()});
  if (r.size() == 0 || c.size() == 0) return absl::nullopt;
  StateBox state;
  state.row_stride = stride;
  state.begin = r.begin * stride + c.begin;
  if (!is_vector) {
    state.whole.start.push_back(box.whole[0].begin + r.begin - first_row);
    state.whole.shape.push_back(r.size());
  }
  state.whole.start.push_back(box.whole.back().begin + c.begin - first_column);
  state.whole.shape.push_back(c.size());
  return state;
}

void AddTensors(const std::string& prefix, const Unit& unit,
                const MeshPlace& place, const FlatPart& part, char* memory,
                std::vector<StateTensor>& tensors) {
  for (const Parameter& parameter : unit.parameters()) {
    const int64_t offset = parameter.offset();
    const Range within =
        Both({part.wanted.begin - offset, part.wanted.end - offset},
             {0, LocalElements(parameter)});
    const int64_t stride = LocalShape(parameter).back();
    const std::vector<Rows> rows = RowsOfRange(within, stride);
    if (rows.empty()) continue;
    StateTensor tensor;
    tensor.name = absl::StrCat(prefix, parameter.name());
    tensor.shape = WholeShape(parameter);
    tensor.data = memory;
    for (const ParameterBox& box : BoxesOf(parameter, place)) {
      for (const Rows& piece : rows) {
        absl::optional<StateBox> state = BoxIn(box, piece, stride);
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
  const Range all = {0, unit.flat_elements()};
  const FlatPart part = {.held = memory.holds.value_or(all),
                         .wanted = range.value_or(all)};
  std::vector<StateTensor> tensors;
  AddTensors("", unit, place, part, memory.parameters, tensors);
  if (memory.optimizer_state == nullptr) return tensors;
  char* flat = memory.optimizer_state;
  for (const std::string& prefix : StatePrefixes(optimizer)) {
    AddTensors(prefix, unit, place, part, flat, tensors);
    flat += part.held.size() * sizeof(float);
  }
  return tensors;
}

std::vector<ParameterRun> RunsWithin(const StateTensor& tensor, int64_t begin,
                                     int64_t end) {
  const int64_t width = tensor.shape.back();
  std::vector<ParameterRun> runs;
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
