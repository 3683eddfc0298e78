// The feed-forward half of a Llama block (Shazeer, arXiv 2002.05202):
//
//   y = (silu(x Wg + bg) * (x Wu + bu)) Wd + bd
//
// Shapes: x, y are [..., width]; gate_up, gate and up side by side, is
// [..., 2 intermediate]; gated [..., intermediate].
#ifndef TROUPE_WORKER_MODEL_SWIGLU_MLP_H_
#define TROUPE_WORKER_MODEL_SWIGLU_MLP_H_

#include <string>

#include "absl/status/statusor.h"
#include "ops/device.h"
#include "ops/tensor.h"
#include "proto/plan.pb.h"
#include "worker/model/joined_linear.h"
#include "worker/model/linear.h"

namespace troupe {

class SwiGluMlp {
 public:
  struct Options {
    std::string prefix;  // of `<prefix>.gate_proj`, `.up_proj`, `.down_proj`
    int64_t width = 0;
    int64_t intermediate = 0;
    bool bias = false;
  };
  // InvalidArgument as FindParameter.
  static absl::StatusOr<SwiGluMlp> Create(const Unit& unit,
                                          const Options& options);

  struct ForwardArgs {
    Tensor x;
    Tensor gate_up;  // written: the backward needs it
    Tensor gated;    // written
    Tensor y;        // written
  };
  void Forward(Device& device, void* parameters, const ForwardArgs& args) const;

  struct BackwardInputArgs {
    Tensor dy;
    Tensor gate_up;
    Tensor d_gated;    // written: scratch of gated's shape
    Tensor d_gate_up;  // written, for BackwardWeight
    Tensor dx;         // written
  };
  void BackwardInput(Device& device, void* parameters,
                     const BackwardInputArgs& args) const;

  struct BackwardWeightArgs {
    Tensor x;
    Tensor d_gate_up;
    Tensor gated;
    Tensor dy;
    bool from_zero = false;
  };
  // Adds to the flat buffer of gradients; from_zero: which holds zeros.
  void BackwardWeight(Device& device, void* gradients,
                      const BackwardWeightArgs& args) const;

 private:
  SwiGluMlp(JoinedLinear gate_up, Linear down);

  JoinedLinear gate_up_;
  Linear down_;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_MODEL_SWIGLU_MLP_H_
