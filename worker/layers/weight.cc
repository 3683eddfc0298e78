// The weights of a product as a tensor, which ranks exchange in panels. Several
// lie below one another.
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ops/bias_gradient.h"
#include "ops/reduce.h"
#include "proto/base/status.h"
#include "proto/plan/tensor_spec.h"
#include "worker/layers/kinds.h"

namespace troupe {
namespace {

class WeightLayer final : public Layer {
 public:
  WeightLayer(const OpBinding& op, std::vector<ParameterPlace> weights)
      : weights_(std::move(weights)),
        y_(op.Output("y")),
        dy_(op.OutputGradient("y")) {}

  void Forward(const LayerCall& call) const override {
    int64_t begin = 0;
    for (const ParameterPlace& weight : weights_) {
      Copy(call.device,
           {.x = weight.Values(call), .y = RowsOf(y_.In(call), weight, begin)});
      begin += weight.rows();
    }
  }

  void BackwardWeight(const LayerCall& call) const override {
    int64_t begin = 0;
    for (const ParameterPlace& weight : weights_) {
      const Tensor dy = RowsOf(dy_.In(call), weight, begin);
      begin += weight.rows();
      if (!weight.trained()) continue;
      // Adds one row, to f32 or to its own type.
      BiasGradient(call.device, {.dy = dy.View({1, dy.elements()}),
                                 .db = weight.Gradient(call).Flat()});
    }
  }

 private:
  static Tensor RowsOf(const Tensor& all, const ParameterPlace& weight,
                       int64_t begin) {
    return all.Slice(0, begin, begin + weight.rows());
  }

  const std::vector<ParameterPlace> weights_;
  const OperandPlace y_;
  const OperandPlace dy_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Layer>> NewWeight(const OpBinding& op) {
  const TensorSpec& y = op.view().output("y");
  std::vector<ParameterPlace> weights(op.op().parameters_size());
  int64_t rows = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    ASSIGN_OR_RETURN(weights[i], op.Parameter(i, {-1, ColumnsOf(y)}));
    rows += weights[i].rows();
  }
  if (rows != DimSize(y.dims(0))) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the weights of a WEIGHT have ", rows, " rows, but its output has ",
        DimSize(y.dims(0)), "; scheduler and worker must be of one build"));
  }
  return std::make_unique<WeightLayer>(op, std::move(weights));
}

}  // namespace troupe
