#include "scheduler/layouts/split_norms.h"

#include "proto/plan/ops/op_view.h"
#include "proto/plan/tensor_spec.h"
#include "scheduler/layouts/table_writer.h"

namespace troupe {
namespace {

constexpr int64_t kRowSums = 2;

bool IsCutByColumns(const TensorSpec& tensor, const std::string& axis) {
  for (const Layout::AxisLayout& of : tensor.layout().axes()) {
    if (of.axis() == axis && of.placement() == Layout::SHARD) {
      return of.dim() == tensor.dims_size() - 1;
    }
  }
  return false;
}

void Forget(const std::string& axis, Layout& layout) {
  for (int i = layout.axes_size(); i-- > 0;) {
    if (layout.axes(i).axis() == axis) {
      layout.mutable_axes()->DeleteSubrange(i, 1);
    }
  }
}

void SetPartial(const std::string& axis, Layout& layout) {
  Layout::AxisLayout& added = *layout.add_axes();
  added.set_axis(axis);
  added.set_placement(Layout::PARTIAL);
}

// Two for each row of x.
int AddRowSums(int x, const std::string& axis, absl::string_view what,
               TableWriter& writer) {
  const int row_sums = writer.NewTensor(x, what);
  TensorSpec& spec = writer.tensor(row_sums);
  *spec.mutable_dims(spec.dims_size() - 1) = DimOf({{Dim::ROW_SUMS, kRowSums}});
  spec.set_dtype(F64);
  spec.clear_row_alignment();
  Forget(axis, *spec.mutable_layout());
  Forget(axis, *spec.mutable_gradient_layout());
  return row_sums;
}

void Split(const std::string& axis, const Op& norm, UnitTable& table) {
  const OpView view(table, norm);
  const bool adds = view.HasInput("residual");
  const int x = adds ? view.Output("sum") : view.Input("x");
  TableWriter writer(norm, table);
  if (adds) {
    writer.AddOp(Op::ADD,
                 {{"x", view.Input("x")}, {"residual", view.Input("residual")}},
                 {{"y", x}});
  }
  const int own = AddRowSums(x, axis, "row sums of some columns", writer);
  const int whole = AddRowSums(x, axis, "row sums", writer);
  SetPartial(axis, *writer.tensor(own).mutable_layout());
  SetPartial(axis, *writer.tensor(whole).mutable_gradient_layout());
  writer.AddOp(Op::ROW_SUMS, {{"x", x}}, {{"y", own}});
  Op& sum = writer.AddOp(Op::EXCHANGE, {{"x", own}}, {{"y", whole}});
  sum.mutable_exchange()->add_axes(axis);
  sum.mutable_exchange()->set_forward(ALL_REDUCE);
  sum.mutable_exchange()->set_backward(ALL_REDUCE);
  Op& split = writer.AddOp(Op::SPLIT_NORM, {{"x", x}, {"row_sums", whole}},
                           {{"y", view.Output("y")},
                            {"mean", view.Output("mean")},
                            {"rstd", view.Output("rstd")}});
  *split.mutable_norm() = norm.norm();
  *split.mutable_parameters() = norm.parameters();
}

}  // namespace

void SplitNorms(const AxisSpan& axis, UnitTable& table) {
  ReplaceOps(
      Op::NORM,
      [&axis](const Op& norm, UnitTable& table) {
        const int y = OpView(table, norm).Output("y");
        if (IsCutByColumns(table.tensors(y), axis.name)) {
          Split(axis.name, norm, table);
        } else {
          *table.add_ops() = norm;
        }
      },
      table);
}

}  // namespace troupe
