// Each head of queries and of keys through an RMS norm; values are copied.
#include <utility>

#include "ops/reduce.h"
#include "ops/rms_norm.h"
#include "proto/base/status.h"
#include "proto/plan/tensor_spec.h"
#include "worker/layers/kinds.h"

namespace troupe {
namespace {

// The heads of queries, or those of keys.
struct NormedHeads {
  int64_t begin = 0;
  int64_t end = 0;
  OperandPlace rstd;
  ParameterPlace gamma;
};

class HeadNormLayer final : public Layer {
 public:
  HeadNormLayer(const OpBinding& op, ParameterPlace queries,
                ParameterPlace keys)
      : x_(op.Input("x")),
        y_(op.Output("y")),
        dx_(op.InputGradient("x")),
        dy_(op.OutputGradient("y")),
        epsilon_(static_cast<float>(op.op().head_norm().epsilon())) {
    const TensorSpec& x = op.view().input("x");
    const Dim& columns = x.dims(x.dims_size() - 1);
    width_ = columns.sections(0).width();
    heads_ = ColumnsOf(x) / width_;
    const int64_t queries_end = columns.sections(0).count();
    normed_[0] = {.begin = 0,
                  .end = queries_end,
                  .rstd = op.Output("query_rstd"),
                  .gamma = std::move(queries)};
    normed_[1] = {.begin = queries_end,
                  .end = queries_end + columns.sections(1).count(),
                  .rstd = op.Output("key_rstd"),
                  .gamma = std::move(keys)};
  }

  void Forward(const LayerCall& call) const override {
    const Tensor x = x_.In(call);
    const Tensor y = y_.In(call);
    for (const NormedHeads& normed : normed_) {
      RmsNorm(call.device, {.x = HeadsOf(x, normed),
                            .gamma = normed.gamma.Values(call),
                            .epsilon = epsilon_,
                            .y = HeadsOf(y, normed),
                            .rstd = normed.rstd.In(call)});
    }
    Copy(call.device, {.x = Values(x), .y = Values(y)});
  }

  void BackwardInput(const LayerCall& call) const override {
    const Tensor x = x_.In(call);
    const Tensor dx = dx_.In(call);
    const Tensor dy = dy_.In(call);
    for (const NormedHeads& normed : normed_) {
      RmsNormBackwardInput(call.device, {.dy = HeadsOf(dy, normed),
                                         .s = HeadsOf(x, normed),
                                         .gamma = normed.gamma.Values(call),
                                         .rstd = normed.rstd.In(call),
                                         .dx = HeadsOf(dx, normed)});
    }
    Copy(call.device, {.x = Values(dy), .y = Values(dx)});
  }

  void BackwardWeight(const LayerCall& call) const override {
    const Tensor x = x_.In(call);
    const Tensor dy = dy_.In(call);
    for (const NormedHeads& normed : normed_) {
      if (!normed.gamma.trained()) continue;
      RmsNormBackwardWeight(call.device,
                            {.dy = HeadsOf(dy, normed),
                             .s = HeadsOf(x, normed),
                             .rstd = normed.rstd.In(call),
                             .dgamma = normed.gamma.Gradient(call)});
    }
  }

 private:
  // [batch, sequence, heads, width]
  Tensor HeadsOf(const Tensor& all, const NormedHeads& normed) const {
    return all.View({all.dim(0), all.dim(1), heads_, width_})
        .Slice(2, normed.begin, normed.end);
  }
  Tensor Values(const Tensor& all) const {
    return all.Slice(2, normed_[1].end * width_, heads_ * width_);
  }

  const OperandPlace x_;
  const OperandPlace y_;
  const OperandPlace dx_;
  const OperandPlace dy_;
  const float epsilon_;
  int64_t width_ = 0;  // of a head
  int64_t heads_ = 0;  // of queries, keys and values
  NormedHeads normed_[2];
};

}  // namespace

absl::StatusOr<std::unique_ptr<Layer>> NewHeadNorm(const OpBinding& op) {
  const TensorSpec& x = op.view().input("x");
  const int64_t width = x.dims(x.dims_size() - 1).sections(0).width();
  ASSIGN_OR_RETURN(ParameterPlace queries, op.Parameter(0, {width}));
  ASSIGN_OR_RETURN(ParameterPlace keys, op.Parameter(1, {width}));
  return std::make_unique<HeadNormLayer>(op, std::move(queries),
                                         std::move(keys));
}

}  // namespace troupe
