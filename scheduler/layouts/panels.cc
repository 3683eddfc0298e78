#include "scheduler/layouts/panels.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/plan/ops/op_view.h"
#include "scheduler/layouts/table_writer.h"

namespace troupe {
namespace {

bool IsInPanels(const UnitTable& table, const Op& op) {
  if (op.kind() != Op::LINEAR) return false;
  const TensorSpec& y = OpView(table, op).output("y");
  return y.dims(y.dims_size() - 1).sections(0).kind() != Dim::VOCABULARY;
}

void BecomeInner(Dim& dim) {
  for (Dim::Section& section : *dim.mutable_sections()) {
    section.set_kind(Dim::INNER);
  }
}

int DimOfInner(const Op::Linear& linear) { return linear.in_out() ? 0 : 1; }

int AddWeight(const Op& linear, const OpView& view, TableWriter& writer) {
  Dim inner = view.input("x").dims(2);
  const Dim outer = view.output("y").dims(2);
  BecomeInner(inner);
  const bool in_out = linear.linear().in_out();
  const int w = writer.NewTensor(view.Output("y"), "weight");
  TensorSpec& spec = writer.tensor(w);
  spec.clear_dims();
  *spec.add_dims() = in_out ? inner : outer;
  *spec.add_dims() = in_out ? outer : inner;
  spec.clear_row_alignment();
  spec.set_again(true);
  Op& weight = writer.AddOp(Op::WEIGHT, {}, {{"y", w}});
  weight.mutable_linear()->set_in_out(in_out);
  for (int i = 0; i < WeightCount(linear); ++i) {
    weight.add_parameters(linear.parameters(i));
  }
  return w;
}

void Rewrite(const Op& linear, int panels, UnitTable& table) {
  const OpView view(table, linear);
  const int x = view.Input("x");
  const int y = view.Output("y");
  TableWriter writer(linear, table);
  const int w = AddWeight(linear, view, writer);
  int before = -1;
  for (int panel = 0; panel < panels; ++panel) {
    const bool is_last = panel + 1 == panels;
    const int so_far =
        is_last ? y : writer.NewTensor(y, absl::StrCat("up to panel ", panel));
    Op& product =
        writer.AddOp(Op::PRODUCT, {{"x", x}, {"w", w}, {"y before", before}},
                     {{"y", so_far}});
    product.set_panel(panel);
    product.mutable_linear()->set_in_out(linear.linear().in_out());
    if (panel == 0 && linear.linear().bias()) {
      product.mutable_linear()->set_bias(true);
      for (int i = WeightCount(linear); i < linear.parameters_size(); ++i) {
        product.add_parameters(linear.parameters(i));
      }
    }
    before = so_far;
  }
}

// Each weight in front of the last panel of the product before, so that its
// first panel is on its way while that is multiplied; the first in front of
// all.
void BringWeightsForward(UnitTable& table) {
  UnitTable before;
  before.mutable_ops()->Swap(table.mutable_ops());
  std::vector<Op> weights;
  for (const Op& op : before.ops()) {
    if (op.kind() == Op::WEIGHT) weights.push_back(op);
  }
  size_t next = 0;
  const auto add_weight = [&] {
    if (next < weights.size()) *table.add_ops() = weights[next++];
  };
  add_weight();
  for (int i = 0; i < before.ops_size(); ++i) {
    const Op& op = before.ops(i);
    if (op.kind() == Op::WEIGHT) continue;
    const bool is_last_panel =
        op.kind() == Op::PRODUCT &&
        (i + 1 == before.ops_size() || before.ops(i + 1).kind() != Op::PRODUCT);
    if (is_last_panel) add_weight();
    *table.add_ops() = op;
  }
}

}  // namespace

void MultiplyInPanels(const AxisSpan& axis, UnitList& units) {
  for (Unit& unit : units.units) {
    if (!unit.has_table()) continue;
    const UnitTable& table = units.tables[unit.table()];
    for (const Op& op : table.ops()) {
      if (!IsInPanels(table, op)) continue;
      for (int i = 0; i < WeightCount(op); ++i) {
        CHECK_LT(op.parameters(i), unit.parameters_size()) << "is tied";
        Parameter& weight = *unit.mutable_parameters(op.parameters(i));
        BecomeInner(*weight.mutable_dims(DimOfInner(op.linear())));
      }
    }
  }
  for (UnitTable& table : units.tables) {
    ReplaceOps(
        Op::LINEAR,
        [&axis](const Op& linear, UnitTable& table) {
          if (IsInPanels(table, linear)) {
            Rewrite(linear, axis.size, table);
          } else {
            *table.add_ops() = linear;
          }
        },
        table);
    BringWeightsForward(table);
  }
}

}  // namespace troupe
