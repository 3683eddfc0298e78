// The ops of layers of experts.
#include <utility>

#include "absl/strings/str_replace.h"
#include "proto/plan/operands.h"
#include "proto/plan/tensor_spec.h"
#include "proto/plan/unit_builder.h"

namespace troupe {

UnitBuilder::RouteOutputs UnitBuilder::Route(const RouteArgs& args) {
  const Dim choices = DimOf({{Dim::CHOICES, args.choices}});
  RouteOutputs outputs = {.choices = Tensor(args.prefix + "choices",
                                            {batch_, sequence_, choices}, I32),
                          .gates = Tensor(args.prefix + "gates",
                                          {batch_, sequence_, choices}, F32)};
  outputs.scores = Like(args.logits, args.prefix + "scores");
  table_.mutable_tensors(outputs.scores)->clear_gradient_dtype();
  if (args.logsumexp) {
    outputs.logsumexp =
        Tensor(args.prefix + "logsumexp", {batch_, sequence_}, F32);
  }
  Op& op = NewOp(Op::ROUTE);
  AddInput(op, "logits", args.logits);
  AddOutput(op, "choices", outputs.choices);
  AddOutput(op, "gates", outputs.gates);
  AddOutput(op, "scores", outputs.scores);
  if (args.logsumexp) AddOutput(op, "logsumexp", outputs.logsumexp);
  Op::Route& route = *op.mutable_route();
  route.set_sigmoid(args.sigmoid);
  route.set_renormalise(args.renormalise);
  route.set_scale(args.scale);
  route.set_groups(args.groups);
  route.set_groups_used(args.groups_used);
  if (!args.bias.empty()) {
    const int64_t experts = DimSize(ColumnDimOf(table_.tensors(args.logits)));
    const int bias =
        LoadState(args.bias, experts, outputs.choices, args.bias_rate);
    troupe::Parameter& parameter = *unit_.mutable_parameters(bias);
    parameter.mutable_load()->set_of_model(args.bias_of_model);
    // A part of the model, which adapters leave as it is.
    parameter.set_frozen(
        args.bias_rate == 0 ||
        (args.bias_of_model && options_.shape.lora != nullptr));
    op.add_parameters(bias);
  }
  return outputs;
}

int UnitBuilder::LoadState(const std::string& name, int64_t experts,
                           int choices, double bias_rate) {
  const int index = Parameter(name, {DimOf({{Dim::STATISTICS, experts}})},
                              troupe::Parameter::ZEROS);
  const int64_t of_token = DimSize(ColumnDimOf(table_.tensors(choices)));
  troupe::Parameter& parameter = *unit_.mutable_parameters(index);
  parameter.mutable_load()->set_per_token(static_cast<double>(of_token) /
                                          static_cast<double>(experts));
  parameter.mutable_load()->set_bias_rate(bias_rate);
  parameter.set_frozen(false);
  return index;
}

int UnitBuilder::RouterLoad(int choices, int64_t experts) {
  const int load =
      Tensor("router load", {batch_, DimOf({{Dim::STATISTICS, experts}})}, F32);
  Op& op = NewOp(Op::ROUTER_LOAD);
  AddInput(op, "choices", choices);
  AddOutput(op, "load", load);
  return load;
}

void UnitBuilder::RouterLoss(const RouterLossArgs& args) {
  Op& op = NewOp(Op::ROUTER_LOSS);
  AddInput(op, "scores", args.route.scores);
  AddInput(op, "choices", args.route.choices);
  if (args.load >= 0) AddInput(op, "load", args.load);
  if (args.route.logsumexp >= 0) {
    AddInput(op, "logsumexp", args.route.logsumexp);
  }
  op.mutable_router_loss()->set_balance_coefficient(args.balance_coefficient);
  op.mutable_router_loss()->set_z_coefficient(args.z_coefficient);
  if (args.shares.empty()) return;
  const int64_t experts =
      DimSize(ColumnDimOf(table_.tensors(args.route.scores)));
  op.add_parameters(
      LoadState(args.shares, experts, args.route.choices, /*bias_rate=*/0));
}

int UnitBuilder::Capacity(const RouteOutputs& route, int64_t experts,
                          int64_t places) {
  const int kept = Like(route.gates, "kept gates");
  Op& op = NewOp(Op::CAPACITY);
  AddInput(op, "choices", route.choices);
  AddInput(op, "gates", route.gates);
  AddOutput(op, "kept", kept);
  op.mutable_capacity()->set_places(places);
  op.mutable_capacity()->set_experts(experts);
  return kept;
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
