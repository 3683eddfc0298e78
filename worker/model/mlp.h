// The feed-forward half of a block: y = gelu(x Wf + bf) Wp + bp.
//
// Shapes: x, y are [..., width]; before_gelu, after_gelu [..., intermediate].
#ifndef TROUPE_WORKER_MODEL_MLP_H_
#define TROUPE_WORKER_MODEL_MLP_H_

#include <string>

#include "absl/status/statusor.h"
#include "ops/device.h"
#include "ops/tensor.h"
#include "proto/plan.pb.h"
#include "worker/model/linear.h"

namespace troupe {

class Mlp {
 public:
  struct Options {
    std::string prefix;  // of `<prefix>.c_fc` and `<prefix>.c_proj`
    int64_t width = 0;
    int64_t intermediate = 0;
  };
  // InvalidArgument as FindParameter.
  static absl::StatusOr<Mlp> Create(const Unit& unit, const Options& options);

  struct ForwardArgs {
    Tensor x;
    Tensor before_gelu;  // optional, written: the backward needs it
    Tensor after_gelu;   // written
    Tensor y;            // written
  };
  void Forward(Device& device, void* parameters, const ForwardArgs& args) const;

  struct BackwardInputArgs {
    Tensor dy;
    Tensor before_gelu;
    Tensor d_before_gelu;  // written, for BackwardWeight
    Tensor dx;             // written
  };
  void BackwardInput(Device& device, void* parameters,
                     const BackwardInputArgs& args) const;

  struct BackwardWeightArgs {
    Tensor x;
    Tensor d_before_gelu;
    Tensor after_gelu;
    Tensor dy;
    bool from_zero = false;
  };
  // Adds to the flat buffer of gradients; from_zero: which holds zeros.
  void BackwardWeight(Device& device, void* gradients,
                      const BackwardWeightArgs& args) const;

 private:
  Mlp(Linear c_fc, Linear c_proj);

  Linear c_fc_;
  Linear c_proj_;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_MODEL_MLP_H_
