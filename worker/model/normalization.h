// The norm in front of a layer: LayerNorm (ops/layer_norm.h), which has a
// weight and a bias, or RMSNorm (ops/rms_norm.h), which has a weight only and
// no mean. It knows where its weights lie; callers give activations and
// statistics, with the shapes that the ops' headers say.
#ifndef TROUPE_WORKER_MODEL_NORMALIZATION_H_
#define TROUPE_WORKER_MODEL_NORMALIZATION_H_

#include <string>

#include "absl/status/statusor.h"
#include "ops/device.h"
#include "ops/dropout.h"
#include "ops/tensor.h"
#include "proto/plan.pb.h"
#include "worker/model/tensor_place.h"

namespace troupe {

class Normalization {
 public:
  enum class Kind { kLayerNorm, kRmsNorm };
  struct Options {
    Kind kind = Kind::kLayerNorm;
    std::string prefix;  // of `<prefix>.weight`, and LayerNorm's `.bias`
    int64_t width = 0;
    double epsilon = 1e-5;
  };
  // InvalidArgument as FindParameter.
  static absl::StatusOr<Normalization> Create(const Unit& unit,
                                              const Options& options);

  // y = norm(s), s = residual + dropout(x), or s = x without a residual.
  struct ForwardArgs {
    Tensor x;
    Tensor residual;      // optional
    Tensor sum;           // with a residual: receives s
    DropoutMask dropout;  // of x; only with a residual
    Tensor y;
    Tensor mean;  // optional; LayerNorm only
    Tensor rstd;  // optional
  };
  void Forward(Device& device, void* parameters, const ForwardArgs& args) const;

  struct BackwardInputArgs {
    Tensor dy;
    Tensor s;
    Tensor mean;  // LayerNorm only
    Tensor rstd;
    Tensor residual_gradient;  // optional, added to dx
    Tensor dx;
  };
  void BackwardInput(Device& device, void* parameters,
                     const BackwardInputArgs& args) const;

  struct BackwardWeightArgs {
    Tensor dy;
    Tensor s;
    Tensor mean;  // LayerNorm only
    Tensor rstd;
  };
  // Adds to the flat buffer of gradients.
  void BackwardWeight(Device& device, void* gradients,
                      const BackwardWeightArgs& args) const;

 private:
  Normalization(const Options& options, ParameterPlace gamma,
                ParameterPlace beta);

  Kind kind_;
  float epsilon_;
  ParameterPlace gamma_;
  ParameterPlace beta_;  // LayerNorm only
};

}  // namespace troupe

#endif  // TROUPE_WORKER_MODEL_NORMALIZATION_H_
