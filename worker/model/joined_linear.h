// Several projections of one input whose outputs lie side by side, as columns
// of one tensor: queries, keys and values; gate and up. Where their weights are
// one range of the flat buffer too, they are one product, else one each.
#ifndef TROUPE_WORKER_MODEL_JOINED_LINEAR_H_
#define TROUPE_WORKER_MODEL_JOINED_LINEAR_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ops/device.h"
#include "ops/tensor.h"
#include "proto/plan.pb.h"
#include "worker/model/linear.h"

namespace troupe {

class JoinedLinear {
 public:
  struct Projection {
    std::string prefix;  // of `<prefix>.weight` and `<prefix>.bias`
    int64_t out = 0;
  };
  struct Options {
    std::vector<Projection> projections;  // in the order of their columns
    int64_t in = 0;
    WeightLayout layout = WeightLayout::kInOut;
    bool bias = true;
  };
  // InvalidArgument as FindParameter.
  static absl::StatusOr<JoinedLinear> Create(const Unit& unit,
                                             const Options& options);

  int products() const { return static_cast<int>(parts_.size()); }

  struct ForwardArgs {
    Tensor x;  // [..., in]
    Tensor y;  // [..., sum of out], written
  };
  void Forward(Device& device, void* parameters, const ForwardArgs& args) const;

  struct BackwardInputArgs {
    Tensor dy;  // [..., sum of out]
    Tensor dx;  // written
  };
  void BackwardInput(Device& device, void* parameters,
                     const BackwardInputArgs& args) const;

  struct BackwardWeightArgs {
    Tensor x;
    Tensor dy;
    bool from_zero = false;
  };
  // Adds to the flat buffer of gradients; from_zero: which holds zeros.
  void BackwardWeight(Device& device, void* gradients,
                      const BackwardWeightArgs& args) const;

 private:
  explicit JoinedLinear(std::vector<Linear> parts);

  std::vector<Linear> parts_;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_MODEL_JOINED_LINEAR_H_
