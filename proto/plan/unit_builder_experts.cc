// The ops of layers of experts.
#include <utility>

#include "absl/strings/str_replace.h"
#include "proto/plan/operands.h"
#include "proto/plan/tensor_spec.h"
#include "proto/plan/unit_builder.h"

namespace troupe {

UnitBuilder::RouteOutputs UnitBuilder::Route(const RouteArgs& args) {
  const Dim choices = DimOf({{Dim::CHOICES, args.choices}});
  const RouteOutputs outputs = {
      .choices = Tensor("choices", {batch_, sequence_, choices}, I32),
      .gates = Tensor("gates", {batch_, sequence_, choices}, F32)};
  const int scores = Like(args.logits, "scores");
  table_.mutable_tensors(scores)->clear_gradient_dtype();
  Op& op = NewOp(Op::ROUTE);
  AddInput(op, "logits", args.logits);
  AddOutput(op, "choices", outputs.choices);
  AddOutput(op, "gates", outputs.gates);
  AddOutput(op, "scores", scores);
  Op::Route& route = *op.mutable_route();
  route.set_sigmoid(args.sigmoid);
  route.set_renormalise(args.renormalise);
  route.set_scale(args.scale);
  route.set_groups(args.groups);
  route.set_groups_used(args.groups_used);
  return outputs;
}

UnitBuilder::Dispatched UnitBuilder::Dispatch(int x, const RouteOutputs& route,
                                              int64_t experts) {
  const Dim choices = ColumnDimOf(table_.tensors(route.choices));
  const Dim columns = ColumnDimOf(table_.tensors(x));
  const Dispatched outputs = {
      .rows = Tensor("rows", {batch_, sequence_, choices, columns},
                     options_.shape.dtype),
      .gates = Like(route.gates, "gates of rows"),
      .sources = Like(route.choices, "sources"),
      .places = Like(route.choices, "places"),
      .offsets =
          Tensor("offsets", {DimOf({{Dim::STATISTICS, experts + 1}})}, I32)};
  Op& op = NewOp(Op::DISPATCH);
  AddInput(op, "x", x);
  AddInput(op, "choices", route.choices);
  AddInput(op, "gates", route.gates);
  AddOutput(op, "rows", outputs.rows);
  AddOutput(op, "row_gates", outputs.gates);
  AddOutput(op, "sources", outputs.sources);
  AddOutput(op, "places", outputs.places);
  AddOutput(op, "offsets", outputs.offsets);
  return outputs;
}

int UnitBuilder::Combine(int x, const Dispatched& dispatched) {
  const Dim columns = ColumnDimOf(table_.tensors(x));
  const int y =
      Tensor("combined", {batch_, sequence_, columns}, options_.shape.dtype);
  Op& op = NewOp(Op::COMBINE);
  AddInput(op, "x", x);
  AddInput(op, "sources", dispatched.sources);
  AddInput(op, "places", dispatched.places);
  AddOutput(op, "y", y);
  return y;
}

int UnitBuilder::GroupedLinear(const GroupedLinearArgs& args) {
  TensorSpec spec = table_.tensors(args.x);
  Dim& columns = *spec.mutable_dims(spec.dims_size() - 1);
  const Dim in = columns;
  columns.Clear();
  for (const Projection& projection : args.projections) {
    columns.mutable_sections()->MergeFrom(projection.out.sections());
  }
  spec.set_name(args.output);
  *table_.add_tensors() = std::move(spec);
  const int y = table_.tensors_size() - 1;
  Op& op = NewOp(Op::GROUPED_LINEAR);
  AddInput(op, "x", args.x);
  AddInput(op, "offsets", args.offsets);
  AddOutput(op, "y", y);
  for (const Projection& projection : args.projections) {
    const std::string each = projection.name + ".weight";
    const int parameter = Parameter(
        absl::StrReplaceAll(each, {{"*.", ""}}),
        {DimOf({{Dim::EXPERT_WEIGHTS, args.experts}}), projection.out, in},
        troupe::Parameter::NORMAL, args.init_std);
    unit_.mutable_parameters(parameter)->set_each_in(each);
    op.add_parameters(parameter);
  }
  return y;
}

}  // namespace troupe
