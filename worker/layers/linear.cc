// y = x W + b. Several weights, whose outputs lie side by side, are one product
// where they are one range of the flat buffer too, else one each. With a fused
// GELU behind it, y goes through that; with one before it, the gradient of x
// goes back through that; with a fused ADD behind it, y is that sum. Of
// a chunk, it is of some rows of x.
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "ops/bias_gradient.h"
#include "ops/matmul.h"
#include "proto/base/check.h"
#include "proto/base/status.h"
#include "proto/plan/tensor_spec.h"
#include "worker/layers/kinds.h"

namespace troupe {
namespace {

struct Product {
  ParameterPlace weight;
  ParameterPlace bias;    // optional
  int64_t first_out = 0;  // of y's columns
  int64_t out = 0;
};

// Both as one, where that is one range of memory.
absl::optional<Product> Join(const Product& left, const Product& right) {
  const auto weight = left.weight.JoinedWith(right.weight);
  if (!weight.has_value()) return absl::nullopt;
  Product both = left;
  both.weight = *weight;
  both.out += right.out;
  if (!left.bias.exists()) return both;
  const auto bias = left.bias.JoinedWith(right.bias);
  if (!bias.has_value()) return absl::nullopt;
  both.bias = *bias;
  return both;
}

Tensor Columns(const Tensor& all, const Product& product) {
  if (product.out == all.columns()) return all;
  return all.Slice(all.rank() - 1, product.first_out,
                   product.first_out + product.out);
}

// Of x, or its gradient, the rows of an op's chunk; all where it has none.
Tensor ChunkOf(const Tensor& all, const Op::Chunk& chunk) {
  if (chunk.rows() == 0) return all;
  return all.View({all.rows(), all.columns()})
      .Slice(0, chunk.first_row(), chunk.first_row() + chunk.rows());
}

class LinearLayer final : public Layer {
 public:
  LinearLayer(const OpBinding& op, std::vector<Product> products)
      : products_(std::move(products)),
        in_out_(op.op().linear().in_out()),
        chunk_(op.op().chunk()),
        x_(op.Input("x")),
        y_(op.Output("y")),
        dx_(op.InputGradient("x")),
        added_(op.AddedGradient("x")),
        dy_(op.OutputGradient("y")),
        adds_bias_(op.AddsOnce("y")) {
    if (const auto gelu = op.FusedReader("y", Op::GELU)) {
      activation_ = Activation::kGelu;
      pre_activation_ = y_;
      y_ = gelu->Output("y");
    }
    if (const auto gelu = op.FusedMaker("x", Op::GELU)) {
      gelu_input_ = gelu->Input("x");
    }
    if (const auto add = op.FusedReader("y", Op::ADD)) {
      residual_ = add->Input("residual");
      y_ = add->Output("y");
    }
    CHECK(products_.size() == 1 ||
          (activation_ == Activation::kNone && !gelu_input_.exists() &&
           !residual_.exists()))
        << "a GELU or ADD is fused with one product, not with several";
  }

  void Forward(const LayerCall& call) const override {
    const Tensor x = ChunkOf(x_.In(call), chunk_);
    const Tensor y = y_.In(call);
    for (const Product& product : products_) {
      MatMul(call.device,
             {.a = x,
              .b = product.weight.Values(call),
              .c = Columns(y, product),
              .transpose_b = !in_out_,
              .bias = adds_bias_ ? product.bias.Values(call) : Tensor(),
              .activation = activation_,
              .pre_activation = pre_activation_.In(call),
              .residual = residual_.In(call)});
    }
  }

  void BackwardInput(const LayerCall& call) const override {
    const Tensor dx = ChunkOf(dx_.In(call), chunk_);
    const Tensor dy = dy_.In(call);
    for (const Product& product : products_) {
      const bool first = product.first_out == 0;
      MatMul(call.device, {.a = Columns(dy, product),
                           .b = product.weight.Values(call),
                           .c = dx,
                           .transpose_b = in_out_,
                           .accumulate = !first,
                           .gelu_input = gelu_input_.In(call),
                           .residual = first ? added_.In(call) : Tensor()});
    }
  }

  void BackwardWeight(const LayerCall& call) const override {
    const Tensor all = dy_.In(call);
    for (const Product& product : products_) {
      const Tensor dy = Columns(all, product);
      if (product.weight.trained()) {
        const Tensor x = ChunkOf(x_.In(call), chunk_);
        MatMul(call.device, {.a = in_out_ ? x : dy,
                             .b = in_out_ ? dy : x,
                             .c = product.weight.Gradient(call),
                             .transpose_a = true,
                             .accumulate = !call.context.gradients_are_zero});
      }
      if (!product.bias.trained()) continue;
      BiasGradient(call.device, {.dy = dy, .db = product.bias.Gradient(call)});
    }
  }

 private:
  const std::vector<Product> products_;
  const bool in_out_;  // weights are [in, out], else [out, in]
  const Op::Chunk chunk_;
  const OperandPlace x_;
  OperandPlace y_;
  const OperandPlace dx_;
  const OperandPlace added_;  // the gradient that a LOW_RANK made
  const OperandPlace dy_;
  const bool adds_bias_;
  Activation activation_ = Activation::kNone;
  OperandPlace pre_activation_;
  OperandPlace gelu_input_;
  OperandPlace residual_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Layer>> NewLinear(const OpBinding& op) {
  const Op::Linear& linear = op.op().linear();
  const int64_t in = ColumnsOf(op.view().input("x"));
  const int64_t out = ColumnsOf(op.view().output("y"));
  const int weights = WeightCount(op.op());
  std::vector<Product> products;
  int64_t begin = 0;
  for (int i = 0; i < weights; ++i) {
    // One weight has all columns; which part several have, their shapes say.
    const int64_t wanted = weights == 1 ? out : -1;
    Product product = {.first_out = begin};
    if (linear.in_out()) {
      ASSIGN_OR_RETURN(product.weight, op.Parameter(i, {in, wanted}));
      product.out = product.weight.columns();
    } else {
      ASSIGN_OR_RETURN(product.weight, op.Parameter(i, {wanted, in}));
      product.out = product.weight.rows();
    }
    if (linear.bias()) {
      ASSIGN_OR_RETURN(product.bias, op.Parameter(weights + i, {product.out}));
    }
    begin += product.out;
    // Only rows can be put side by side without moving anything.
    const absl::optional<Product> joined = linear.in_out() || products.empty()
                                               ? absl::nullopt
                                               : Join(products.back(), product);
    if (joined.has_value()) {
      products.back() = *joined;
    } else {
      products.push_back(std::move(product));
    }
  }
  if (begin != out) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the weights of a LINEAR make ", begin, " columns, but its output has ",
        out, "; scheduler and worker must be of one build"));
  }
  return std::make_unique<LinearLayer>(op, std::move(products));
}

}  // namespace troupe
