// y = x W + b, with an optional GELU behind it. The weights are places in a
// flat buffer, so one layer serves any copy of the parameters.
#ifndef TROUPE_WORKER_MODEL_LINEAR_H_
#define TROUPE_WORKER_MODEL_LINEAR_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "ops/device.h"
#include "ops/tensor.h"
#include "proto/plan.pb.h"
#include "worker/model/tensor_place.h"

namespace troupe {

// How W is stored: [in, out] as GPT-2's Conv1D has it, or [out, in] as torch's
// nn.Linear does.
enum class WeightLayout { kInOut, kOutIn };

struct LinearOptions {
  int64_t in = 0;
  int64_t out = 0;
  WeightLayout layout = WeightLayout::kInOut;
  bool bias = true;
};

class Linear {
 public:
  // Finds `<prefix>.weight` and, where there is one, `<prefix>.bias` in the
  // unit; InvalidArgument as FindParameter.
  static absl::StatusOr<Linear> Create(const Unit& unit,
                                       const std::string& prefix,
                                       const LinearOptions& options);

  // The one layer that does what both do for one input, its output being
  // theirs side by side; where that is not one range of memory, nothing.
  static absl::optional<Linear> Join(const Linear& left, const Linear& right);

  int64_t out() const;

  struct ForwardArgs {
    Tensor x;  // [..., in]
    Tensor y;  // [..., out], written; rows may be strided
    // Whether y is gelu(x W + b); then `before_gelu`, where given, receives
    // x W + b, which the backward of the GELU needs.
    bool gelu = false;
    Tensor before_gelu;
  };
  void Forward(Device& device, void* parameters, const ForwardArgs& args) const;

  struct BackwardInputArgs {
    Tensor dy;                // of x W + b; rows may be strided
    Tensor dx;                // written
    bool accumulate = false;  // dx is added to instead
    // Optional: x was gelu(gelu_input), and dx is the gradient of gelu_input.
    Tensor gelu_input;
  };
  void BackwardInput(Device& device, void* parameters,
                     const BackwardInputArgs& args) const;

  struct BackwardWeightArgs {
    Tensor x;
    Tensor dy;  // rows may be strided
    bool from_zero = false;
  };
  // Adds to the flat buffer of gradients; from_zero: which holds zeros.
  void BackwardWeight(Device& device, void* gradients,
                      const BackwardWeightArgs& args) const;

 private:
  Linear(ParameterPlace weight, ParameterPlace bias, WeightLayout layout);

  ParameterPlace weight_;
  ParameterPlace bias_;  // optional
  WeightLayout layout_;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_MODEL_LINEAR_H_
