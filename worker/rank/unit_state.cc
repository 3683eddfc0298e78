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

void AddTensors(const std::string& prefix, const Unit& unit,
                const MeshPlace& place, int64_t first_element, char* flat,
                std::vector<StateTensor>& tensors) {
  for (const Parameter& parameter : unit.parameters()) {
    if (parameter.offset() < first_element) continue;
    StateTensor tensor;
    tensor.name = absl::StrCat(prefix, parameter.name());
    tensor.shape = WholeShape(parameter);
    tensor.data = flat + parameter.offset() * sizeof(float);
    const int64_t stride = LocalShape(parameter).back();
    for (const ParameterBox& box : BoxesOf(parameter, place)) {
      StateBox& added = tensor.boxes.emplace_back();
      added.row_stride = stride;
      added.begin = box.local_begin.back();
      if (box.whole.size() > 1) added.begin += box.local_begin[0] * stride;
      for (const Range& range : box.whole) {
        added.whole.start.push_back(range.begin);
        added.whole.shape.push_back(range.size());
      }
      tensor.elements += added.rows() * added.columns();
    }
    tensors.push_back(std::move(tensor));
  }
}

}  // namespace

std::vector<StateTensor> UnitStateTensors(const OptimizerSpec& optimizer,
                                          const Unit& unit,
                                          const UnitFlatBuffers& memory,
                                          const MeshPlace& place, int part) {
  int64_t first = 0;
  for (int p = 0; p < part; ++p) first += unit.parts(p).elements();
  std::vector<StateTensor> tensors;
  AddTensors("", unit, place, first, memory.parameters, tensors);
  if (memory.optimizer_state == nullptr) return tensors;
  char* flat = memory.optimizer_state;
  for (const std::string& prefix : StatePrefixes(optimizer)) {
    AddTensors(prefix, unit, place, first, flat, tensors);
    flat += unit.flat_elements() * sizeof(float);
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
