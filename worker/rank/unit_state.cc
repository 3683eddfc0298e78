#include "worker/rank/unit_state.h"

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

void AddTensors(const std::string& prefix, const Unit& unit, char* flat,
                std::vector<StateTensor>& tensors) {
  for (const Parameter& parameter : unit.parameters()) {
    StateTensor tensor;
    tensor.name = absl::StrCat(prefix, parameter.name());
    tensor.shape.assign(parameter.shape().begin(), parameter.shape().end());
    tensor.data = flat + parameter.offset() * sizeof(float);
    tensor.elements = 1;
    for (const int64_t dim : tensor.shape) tensor.elements *= dim;
    tensors.push_back(std::move(tensor));
  }
}

}  // namespace

std::vector<StateTensor> UnitStateTensors(const OptimizerSpec& optimizer,
                                          const Unit& unit,
                                          const UnitFlatBuffers& memory) {
  std::vector<StateTensor> tensors;
  AddTensors("", unit, memory.parameters, tensors);
  if (memory.optimizer_state == nullptr) return tensors;
  char* flat = memory.optimizer_state;
  for (const std::string& prefix : StatePrefixes(optimizer)) {
    AddTensors(prefix, unit, flat, tensors);
    flat += unit.flat_elements() * sizeof(float);
  }
  return tensors;
}

}  // namespace troupe
