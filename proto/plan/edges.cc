#include "proto/plan/edges.h"

#include <map>

#include "proto/plan/packing.h"
#include "proto/plan/ports.h"
#include "proto/plan/tensor_spec.h"

namespace troupe {
namespace {

// What readers have to know of a table's outputs.
struct Outputs {
  std::vector<int> values;
  std::vector<bool> have_gradient;
};

Outputs OutputsOf(const UnitTable& table) {
  Outputs outputs = {.values = ValuesOfOutputs(table), .have_gradient = {}};
  for (const int t : TensorsOfHome(table, TensorSpec::OUTPUT)) {
    outputs.have_gradient.push_back(!table.tensors(t).no_gradient());
  }
  return outputs;
}

}  // namespace

Edges::Edges(const Plan& plan) : first_(plan.units_size() + 1, 0) {
  std::map<int, Outputs> by_table;
  for (int u = 0; u < plan.units_size(); ++u) {
    first_[u] = static_cast<int>(edges_.size());
    for (int i = 0; i < plan.units(u).inputs_size(); ++i) {
      const Unit::Source& source = plan.units(u).inputs(i);
      Edge& edge = edges_.emplace_back();
      edge.from = source.unit();
      edge.output = source.output();
      edge.to = u;
      edge.input = i;
      const Unit& from = plan.units(source.unit());
      if (!from.has_table()) continue;
      const auto [outputs, is_new] = by_table.try_emplace(from.table());
      if (is_new) outputs->second = OutputsOf(plan.tables(from.table()));
      edge.value = outputs->second.values.at(source.output());
      edge.has_gradient = outputs->second.have_gradient.at(source.output());
    }
  }
  first_.back() = static_cast<int>(edges_.size());
}

absl::Span<const Edge> Edges::Into(int unit) const {
  return absl::MakeConstSpan(edges_).subspan(first_[unit],
                                             first_[unit + 1] - first_[unit]);
}

std::vector<Edge> Edges::OutOf(int unit) const {
  std::vector<Edge> out;
  for (const Edge& edge : edges_) {
    if (edge.from == unit) out.push_back(edge);
  }
  return out;
}

int64_t OutputBytes(const Plan& plan, int unit, int output) {
  const Unit& of = plan.units(unit);
  if (!of.has_table()) return of.activation_bytes();
  const UnitTable& table = plan.tables(of.table());
  const std::vector<int> outputs = TensorsOfHome(table, TensorSpec::OUTPUT);
  if (output < 0 || output >= static_cast<int>(outputs.size())) return 0;
  return LineAligned(BytesOf(table.tensors(outputs[output])));
}

}  // namespace troupe
