// Probabilities of whole rows of scores; under a mask too, where there is one.
#include <cmath>

#include "ops/causal_softmax.h"
#include "ops/dropout.h"
#include "proto/plan/tensor_spec.h"
#include "worker/layers/kinds.h"

namespace troupe {
namespace {

class SoftmaxLayer final : public Layer {
 public:
  explicit SoftmaxLayer(const OpBinding& op)
      : x_(op.Input("x")),
        y_(op.Output("y")),
        dropped_(op.Output("dropped")),
        dx_(op.InputGradient("x")),
        dy_(op.OutputGradient(dropped_.exists() ? "dropped" : "y")),
        documents_(op.DocumentsHere()),
        mask_(op.OwnMask()),
        samples_(DimSize(op.view().input("x").dims(0))),
        keys_(ColumnsOf(op.view().input("x"))),
        first_position_(
            op.Piece(op.view().input("x").dims(2).sections(0)).begin),
        scale_(static_cast<float>(op.op().softmax().scale())) {}

  void Forward(const LayerCall& call) const override {
    const Tensor y = y_.In(call);
    CausalSoftmax(call.device, {.x = x_.In(call),
                                .y = y,
                                .scale = scale_,
                                .first_position = first_position_,
                                .documents = documents_.In(call)});
    if (dropped_.exists()) Drop(call, y, dropped_.In(call));
  }

  void BackwardInput(const LayerCall& call) const override {
    const Tensor dy = dy_.In(call);
    if (dropped_.exists()) Drop(call, dy, dy);
    CausalSoftmaxBackward(call.device, {.y = y_.In(call),
                                        .dy = dy,
                                        .dx = dx_.In(call),
                                        .scale = scale_,
                                        .first_position = first_position_,
                                        .documents = documents_.In(call)});
  }

 private:
  // Rows of one head lie behind one another in the whole matrix, too.
  void Drop(const LayerCall& call, const Tensor& from, const Tensor& to) const {
    const AttentionDropout dropout = mask_.OfProbabilities(call);
    const int64_t heads = from.dim(1);
    for (int64_t sample = 0; sample < samples_; ++sample) {
      for (int64_t head = 0; head < heads; ++head) {
        const int64_t row =
            (((dropout.first_sample + sample) * dropout.total_heads +
              dropout.first_head + head) *
                 keys_ +
             first_position_) *
            keys_;
        const auto of = [&](const Tensor& tensor) {
          return tensor.Slice(0, sample, sample + 1).Slice(1, head, head + 1);
        };
        ApplyDropout(call.device,
                     {.x = of(from),
                      .y = of(to),
                      .mask = {.probability = dropout.probability,
                               .stream = dropout.stream,
                               .first_element = static_cast<uint64_t>(row)}});
      }
    }
  }

  const OperandPlace x_;
  const OperandPlace y_;
  const OperandPlace dropped_;
  const OperandPlace dx_;
  const OperandPlace dy_;
  const Documents documents_;
  const MaskSource mask_;
  const int64_t samples_;
  const int64_t keys_;
  const int64_t first_position_;
  const float scale_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Layer>> NewSoftmax(const OpBinding& op) {
  return std::make_unique<SoftmaxLayer>(op);
}

}  // namespace troupe
