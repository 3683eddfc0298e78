// The optimizer of a job, over the flat buffers of its units: what the STEP
// instruction does.
//
//   const Optimizer optimizer(plan.job().optimizer());
//   const double norm = std::sqrt(scalars[2]);
//   optimizer.Step(device, unit,
//                  {.weights = w, .gradients = g, .state = s, .step = 7,
//                   .learning_rate = 3e-4,
//                   .gradient_scale = ClipCoefficient(norm, 1.0)});
//
// Each part of a unit is trained by one rule (proto/plan/optimizer_rules.h),
// and parts with the same rule lie side by side: a unit is one call of an op
// for each rule that it has. Weight decay touches only parameters that ask for
// it; the op is told where decay ends and begins.
//
// State of a router (Parameter.load) is no weight: ops/load_step.h makes it,
// and the weights before and behind it are calls of their own.
//
// With optimizer.ema the average follows each update (ops/average.h); that of a
// router's state is what it is now.
#ifndef TROUPE_WORKER_MODEL_OPTIMIZER_H_
#define TROUPE_WORKER_MODEL_OPTIMIZER_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "ops/device.h"
#include "ops/tensor.h"
#include "proto/job.pb.h"
#include "proto/plan.pb.h"
#include "proto/plan/layout.h"

namespace troupe {

// What gradients are multiplied with so that their global norm is at most
// `norm_max`, as torch.nn.utils.clip_grad_norm_: norm_max / (norm + 1e-6) where
// that is below 1. `norm_max` 0 means no clipping. A norm that is not finite
// comes out as NaN or 0: look at the norm, not at the coefficient.
double ClipCoefficient(double norm, double norm_max);

// What the average keeps in update `step`, from 1.
double AverageDecay(const EmaSpec& ema, int64_t step);

struct OptimizerStep {
  void* weights = nullptr;  // f32, updated
  // Receives the new weights, rounded; null where the model computes with the
  // weights themselves.
  void* parameters = nullptr;
  DType parameters_type = DType::kBF16;
  void* gradients = nullptr;  // read; left zero where that is asked for
  DType gradients_type = DType::kF32;
  // OPTIMIZER_STATE, StateBytes of what is held: each state behind the one
  // before (proto/plan/optimizer_states.h). Zero before step 1, but averages of
  // weights, which are the weights then.
  void* state = nullptr;
  int64_t step = 1;       // of the updates; the first is 1
  double learning_rate = 0;
  double gradient_scale = 1;
  bool zero_gradients = true;
  // The elements of the unit's flat buffers that these are; nothing: all.
  absl::optional<Range> holds;
  double tokens = 0;  // of the step, on all ranks: for loads of experts
  void* workspace = nullptr;  // StepWorkspaceBytes (optimizer_rules.h)
};

class Optimizer {
 public:
  // REQUIRES a resolved spec. One whose name is none has no Step.
  explicit Optimizer(const OptimizerSpec& spec);

  // Of all states of a whole unit.
  int64_t StateBytes(const Unit& unit) const;

  // An error is the device's.
  absl::Status Step(Device& device, const Unit& unit,
                    const OptimizerStep& step) const;

 private:
  OptimizerSpec spec_;
  std::vector<OptimizerSpec> rules_;  // their settings
};

}  // namespace troupe

#endif  // TROUPE_WORKER_MODEL_OPTIMIZER_H_
