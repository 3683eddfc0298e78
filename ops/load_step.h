// What STEP does with the state of a router (Parameter.Load), in place of an
// optimizer's update. In its gradients' place lies how often each expert was
// chosen in the step, over all ranks and micro-batches:
//
//   bias_rate > 0   w += bias_rate sign(mean - load): the bias of balancing
//                   without a loss (Wang et al., arXiv 2408.15664, algorithm 1;
//                   DeepSeek-V3, arXiv 2412.19437, section 2.1.2)
//   bias_rate = 0   w = load / mean
#ifndef TROUPE_OPS_LOAD_STEP_H_
#define TROUPE_OPS_LOAD_STEP_H_

#include "ops/tensor.h"

namespace troupe {

class Device;

struct LoadStepArgs {
  Tensor weights;     // f32 [n], updated
  Tensor load;        // f32 [n]; set to zero where zero_load
  Tensor parameters;  // optional, f32, bf16 or fp16 [n]: rounded, written
  double mean = 1;    // of an expert's load
  double bias_rate = 0;
  bool zero_load = false;
};

void LoadStep(Device& device, const LoadStepArgs& args);

}  // namespace troupe

#endif  // TROUPE_OPS_LOAD_STEP_H_
