#include "proto/plan/ports.h"

#include <algorithm>

#include "proto/plan/made_again.h"
#include "proto/plan/ops/op_rules.h"

namespace troupe {

std::vector<int> TensorsOfHome(const UnitTable& table, TensorSpec::Home home) {
  std::vector<int> tensors;
  if (home == TensorSpec::OUTPUT) {
    for (const Op& op : table.ops()) {
      for (const Op::Operand& output : op.outputs()) {
        const int t = output.tensor();
        if (table.tensors(t).home() == home) tensors.push_back(t);
      }
    }
    return tensors;
  }
  for (int t = 0; t < table.tensors_size(); ++t) {
    if (table.tensors(t).home() == home) tensors.push_back(t);
  }
  return tensors;
}

int PortOf(const UnitTable& table, int tensor) {
  const std::vector<int> alike =
      TensorsOfHome(table, table.tensors(tensor).home());
  return static_cast<int>(std::find(alike.begin(), alike.end(), tensor) -
                          alike.begin());
}

int SameAs(const UnitTable& table, int tensor) {
  const int maker = MakerOf(table, tensor);
  if (maker < 0) return tensor;
  const OpView op(table, table.ops(maker));
  for (const InPlace& pair : RulesOf(op).in_place) {
    if (pair.same && op.Output(pair.output) == tensor) {
      return SameAs(table, op.Input(pair.input));
    }
  }
  return tensor;
}

std::vector<int> ValuesOfOutputs(const UnitTable& table) {
  std::vector<int> values;
  std::vector<int> same;
  for (const int t : TensorsOfHome(table, TensorSpec::OUTPUT)) {
    same.push_back(SameAs(table, t));
    const auto first = std::find(same.begin(), same.end(), same.back());
    values.push_back(static_cast<int>(first - same.begin()));
  }
  return values;
}

}  // namespace troupe
