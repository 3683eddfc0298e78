#include "proto/plan/place_unit.h"

#include <utility>

#include "proto/base/check.h"
#include "proto/base/status.h"
#include "proto/plan/ops/op_rules.h"
#include "proto/plan/place_gradients.h"
#include "proto/plan/place_values.h"

namespace troupe {
namespace {

void PlaceValues(const UnitTable& table, const PlacedValues& values,
                 UnitPlaces& places) {
  for (int op = 0; op < table.ops_size(); ++op) {
    const Op& spec = table.ops(op);
    OpPlaces& of_op = places.ops[op];
    of_op.again = values.RunsAgain(op);
    for (const auto& [operands, at] :
         {std::pair(&spec.inputs(), &of_op.inputs),
          {&spec.outputs(), &of_op.outputs},
          {&spec.backward_inputs(), &of_op.backward_inputs}}) {
      for (const Op::Operand& operand : *operands) {
        at->push_back(values.At(operand.tensor()));
      }
    }
  }
  places.activation_bytes = values.output_bytes();
  places.stash_bytes = values.stash_bytes();
  places.segment_bytes = values.segment_bytes();
  places.recomputed_bytes = values.recomputed_bytes();
}

}  // namespace

absl::StatusOr<UnitPlaces> TryPlaceUnit(const UnitTable& table, UnitUse use) {
  std::vector<OpRules> rules;
  for (const Op& op : table.ops()) rules.push_back(RulesOf({table, op}));
  UnitPlaces places;
  places.ops.resize(table.ops_size());
  Packing workspace;
  PlacedValues values(table, rules, use, workspace);
  if (use == UnitUse::kTraining) {
    const PlacedGradients gradients(table, rules, values, workspace);
    RETURN_IF_ERROR(gradients.status());
    for (const auto& [tensor, offset_bytes] : gradients.returned()) {
      values.SetReturned(tensor, offset_bytes);
    }
    for (int op = 0; op < table.ops_size(); ++op) {
      gradients.Fill(op, places.ops[op]);
    }
    places.weight_stash_bytes = gradients.weight_stash_bytes();
    places.segment_gradient_bytes = gradients.segment_bytes();
  }
  PlaceValues(table, values, places);
  for (OpPlaces& of_op : places.ops) {
    of_op.input_gradients.resize(of_op.inputs.size());
    of_op.added_gradients.resize(of_op.inputs.size());
    of_op.output_gradients.resize(of_op.outputs.size());
    of_op.backward_input_gradients.resize(of_op.backward_inputs.size());
  }
  places.workspace_bytes = workspace.bytes();
  return places;
}

UnitPlaces PlaceUnit(const UnitTable& table, UnitUse use) {
  absl::StatusOr<UnitPlaces> places = TryPlaceUnit(table, use);
  CHECK_OK(places.status());
  return *std::move(places);
}

Work WorkAgain(const UnitTable& table, const UnitPlaces& places, int begin,
               int end) {
  Work sum;
  for (int i = begin; i < end; ++i) {
    const Again again = places.ops[i].again;
    if (again == Again::kNo) continue;
    const OpRules rules = RulesOf({table, table.ops(i)});
    AddTo(again == Again::kApart ? rules.apart : rules.forward, sum);
  }
  return sum;
}

}  // namespace troupe
