// y = x W + b, W being [in, out] as in GPT-2's Conv1D, with an optional GELU
// behind it. The weights are places in a flat buffer, so one layer serves any
// copy of the parameters.
#ifndef TROUPE_WORKER_MODEL_LINEAR_H_
#define TROUPE_WORKER_MODEL_LINEAR_H_

#include <string>

#include "absl/status/statusor.h"
#include "ops/device.h"
#include "ops/tensor.h"
#include "proto/plan.pb.h"
#include "worker/model/tensor_place.h"

namespace troupe {

struct LinearSize {
  int64_t in = 0;
  int64_t out = 0;
};

class Linear {
 public:
  // Finds `<prefix>.weight` and `<prefix>.bias` in the unit; InvalidArgument as
  // FindParameter.
  static absl::StatusOr<Linear> Create(const Unit& unit,
                                       const std::string& prefix,
                                       const LinearSize& size);

  struct ForwardArgs {
    Tensor x;  // [..., in]
    Tensor y;  // [..., out], written
    // Whether y is gelu(x W + b); then `before_gelu`, where given, receives
    // x W + b, which the backward of the GELU needs.
    bool gelu = false;
    Tensor before_gelu;
  };
  void Forward(Device& device, void* parameters, const ForwardArgs& args) const;

  struct BackwardInputArgs {
    Tensor dy;  // of x W + b
    Tensor dx;  // written
  };
  void BackwardInput(Device& device, void* parameters,
                     const BackwardInputArgs& args) const;

  struct BackwardWeightArgs {
    Tensor x;
    Tensor dy;
  };
  // Adds to the flat buffer of gradients.
  void BackwardWeight(Device& device, void* gradients,
                      const BackwardWeightArgs& args) const;

 private:
  Linear(TensorPlace weight, TensorPlace bias);

  TensorPlace weight_;
  TensorPlace bias_;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_MODEL_LINEAR_H_
