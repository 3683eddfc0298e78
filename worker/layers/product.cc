// y += x W for one panel of a product of blocks. The first one makes y, and
// adds the biases: several are those of weights that lie below one another.
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ops/bias_gradient.h"
#include "ops/matmul.h"
#include "proto/base/check.h"
#include "proto/base/status.h"
#include "proto/plan/tensor_spec.h"
#include "worker/layers/kinds.h"
#include "worker/layers/ring_columns.h"

namespace troupe {
namespace {

class ProductLayer final : public Layer {
 public:
  ProductLayer(const OpBinding& op, std::vector<ParameterPlace> biases)
      : x_(op.Input("x")),
        w_(op.Input("w")),
        y_(op.Output("y")),
        dx_(op.InputGradient("x")),
        dw_(op.InputGradient("w")),
        dy_(op.OutputGradient("y")),
        in_out_(op.op().linear().in_out()),
        adds_(op.view().HasInput("y before")),
        biases_(std::move(biases)) {
    CHECK(!adds_ || RingColumns::SamePlace(op, "y before", "y"))
        << "adds to it";
    CHECK(biases_.size() <= 1 || !in_out_) << "of rows of a weight";
  }

  void Forward(const LayerCall& call) const override {
    const Tensor x = x_.In(call), w = w_.In(call), y = y_.In(call);
    if (biases_.size() <= 1) {
      MatMul(call.device,
             {.a = x,
              .b = w,
              .c = y,
              .transpose_b = !in_out_,
              .accumulate = adds_,
              .bias = biases_.empty() ? Tensor() : biases_[0].Values(call)});
      return;
    }
    ForBiases([&](const ParameterPlace& bias, int64_t begin, int64_t end) {
      MatMul(call.device, {.a = x,
                           .b = w.Slice(0, begin, end),
                           .c = y.Slice(2, begin, end),
                           .transpose_b = true,
                           .bias = bias.Values(call)});
    });
  }

  void BackwardInput(const LayerCall& call) const override {
    const Tensor dy = dy_.In(call);
    if (dx_.exists()) {
      MatMul(call.device, {.a = dy,
                           .b = w_.In(call),
                           .c = dx_.In(call),
                           .transpose_b = in_out_});
    }
    if (!dw_.exists()) return;
    const Tensor x = x_.In(call);
    MatMul(call.device, {.a = in_out_ ? x : dy,
                         .b = in_out_ ? dy : x,
                         .c = dw_.In(call),
                         .transpose_a = true});
  }

  void BackwardWeight(const LayerCall& call) const override {
    const Tensor dy = dy_.In(call);
    ForBiases([&](const ParameterPlace& bias, int64_t begin, int64_t end) {
      if (!bias.trained()) return;
      BiasGradient(call.device,
                   {.dy = dy.Slice(2, begin, end), .db = bias.Gradient(call)});
    });
  }

 private:
  // With their columns of y.
  template <typename Visit>
  void ForBiases(const Visit& visit) const {
    int64_t begin = 0;
    for (const ParameterPlace& bias : biases_) {
      visit(bias, begin, begin + bias.rows());
      begin += bias.rows();
    }
  }

  const OperandPlace x_;
  const OperandPlace w_;
  const OperandPlace y_;
  const OperandPlace dx_;
  const OperandPlace dw_;
  const OperandPlace dy_;
  const bool in_out_;  // w is [in, out], else [out, in]
  const bool adds_;
  const std::vector<ParameterPlace> biases_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Layer>> NewProduct(const OpBinding& op) {
  const int64_t out = ColumnsOf(op.view().output("y"));
  const int count = op.op().parameters_size();
  std::vector<ParameterPlace> biases(count);
  int64_t columns = 0;
  for (int i = 0; i < count; ++i) {
    ASSIGN_OR_RETURN(biases[i], op.Parameter(i, {-1}));
    columns += biases[i].rows();
  }
  if (count > 0 && columns != out) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the biases of a PRODUCT have ", columns, " columns, but its output ",
        out, "; scheduler and worker must be of one build"));
  }
  return std::make_unique<ProductLayer>(op, std::move(biases));
}

}  // namespace troupe
