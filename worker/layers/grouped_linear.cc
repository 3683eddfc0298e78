// y = x W[e] of the rows of each expert e; several weights make columns side by
// side.
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ops/grouped_matmul.h"
#include "proto/base/status.h"
#include "proto/plan/tensor_spec.h"
#include "worker/layers/kinds.h"

namespace troupe {
namespace {

struct GroupedProduct {
  ParameterPlace weight;
  int64_t first_out = 0;  // of y's columns
  int64_t out = 0;
};

Tensor Columns(const Tensor& rows, const GroupedProduct& product) {
  return rows.Slice(1, product.first_out, product.first_out + product.out);
}

class GroupedLinearLayer final : public Layer {
 public:
  GroupedLinearLayer(const OpBinding& op, std::vector<GroupedProduct> products)
      : products_(std::move(products)),
        x_(op.Input("x")),
        offsets_(op.Input("offsets")),
        y_(op.Output("y")),
        dx_(op.InputGradient("x")),
        dy_(op.OutputGradient("y")) {}

  void Forward(const LayerCall& call) const override {
    const Tensor y = y_.RowsIn(call);
    for (const GroupedProduct& product : products_) {
      GroupedMatMul(call.device, {.a = x_.RowsIn(call),
                                  .b = product.weight.Values(call),
                                  .c = Columns(y, product),
                                  .offsets = offsets_.In(call),
                                  .transpose_b = true});
    }
  }

  void BackwardInput(const LayerCall& call) const override {
    const Tensor dy = dy_.RowsIn(call);
    for (const GroupedProduct& product : products_) {
      GroupedMatMul(call.device, {.a = Columns(dy, product),
                                  .b = product.weight.Values(call),
                                  .c = dx_.RowsIn(call),
                                  .offsets = offsets_.In(call),
                                  .accumulate = product.first_out > 0});
    }
  }

  void BackwardWeight(const LayerCall& call) const override {
    const Tensor dy = dy_.RowsIn(call);
    for (const GroupedProduct& product : products_) {
      if (!product.weight.trained()) continue;
      GroupedWeightGradient(call.device,
                            {.x = x_.RowsIn(call),
                             .dy = Columns(dy, product),
                             .offsets = offsets_.In(call),
                             .dw = product.weight.Gradient(call),
                             .accumulate = !call.context.gradients_are_zero});
    }
  }

 private:
  const std::vector<GroupedProduct> products_;
  const OperandPlace x_;
  const OperandPlace offsets_;
  const OperandPlace y_;
  const OperandPlace dx_;
  const OperandPlace dy_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Layer>> NewGroupedLinear(const OpBinding& op) {
  const int64_t in = ColumnsOf(op.view().input("x"));
  const int64_t out = ColumnsOf(op.view().output("y"));
  const int64_t experts = ColumnsOf(op.view().input("offsets")) - 1;
  std::vector<GroupedProduct> products;
  int64_t begin = 0;
  for (int i = 0; i < op.op().parameters_size(); ++i) {
    GroupedProduct product = {.first_out = begin};
    ASSIGN_OR_RETURN(product.weight, op.Parameter(i, {experts, -1, in}));
    product.out = product.weight.dim(1);
    begin += product.out;
    products.push_back(std::move(product));
  }
  if (begin != out) {
    return absl::InvalidArgumentError(
        absl::StrCat("the weights of a GROUPED_LINEAR make ", begin,
                     " columns, but its output has ", out,
                     "; scheduler and worker must be of one build"));
  }
  return std::make_unique<GroupedLinearLayer>(op, std::move(products));
}

}  // namespace troupe
