#include "worker/model/optimizer.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <vector>

#include "ops/optimizer.h"
#include "ops/tensor.h"
#include "proto/base/check.h"
#include "proto/plan/at_rest.h"
#include "proto/plan/optimizer_states.h"

namespace troupe {
namespace {

// Where weight decay ends and begins among the elements that are held. An
// alignment gap goes with the parameter before it: zeros that stay zeros.
std::vector<int64_t> DecayTurns(const Unit& unit, const Range& holds) {
  std::map<int64_t, bool> decays;  // by offset
  for (const Parameter& parameter : unit.parameters()) {
    decays[parameter.offset()] = parameter.weight_decay();
  }
  std::vector<int64_t> turns;
  for (auto at = decays.begin(); at != decays.end(); ++at) {
    const auto next = std::next(at);
    const Range here = Both(
        {at->first, next == decays.end() ? unit.flat_elements() : next->first},
        holds);
    const bool decayed = turns.size() % 2 == 0;
    if (here.size() == 0 || at->second == decayed) continue;
    turns.push_back(here.begin - holds.begin);
  }
  return turns;
}

// So many elements of a buffer, as far as there is one.
Tensor Flat(void* buffer, DType type, int64_t elements) {
  return buffer == nullptr ? Tensor() : Tensor(buffer, type, {elements});
}

}  // namespace

double ClipCoefficient(double norm, double norm_max) {
  if (norm_max == 0) return 1.0;
  return std::min(1.0, norm_max / (norm + 1e-6));
}

Optimizer::Optimizer(const OptimizerSpec& spec)
    : spec_(spec), adamw_(spec.name() == "adamw") {
  CHECK(adamw_ || spec.name() == "sgd" || spec.name() == "none")
      << "optimizer '" << spec.name() << "'";
  CHECK(!adamw_ || spec.betas_size() == 2);
}

int64_t Optimizer::StateBytes(int64_t flat_elements) const {
  return OptimizerMoments(spec_) * flat_elements *
         static_cast<int64_t>(sizeof(float));
}

void Optimizer::Step(Device& device, const Unit& unit,
                     const OptimizerStep& step) const {
  CHECK(spec_.name() != "none") << "a job without optimizer has no STEP";
  const Range holds = step.holds.value_or(Range{0, unit.flat_elements()});
  const int64_t n = holds.size();
  if (n == 0) return;
  auto* const state = static_cast<float*>(step.state);
  const Tensor weights = Flat(step.weights, DType::kF32, n);
  const Tensor gradients = Flat(step.gradients, step.gradients_type, n);
  const Tensor parameters = Flat(step.parameters, step.parameters_type, n);
  if (adamw_) {
    AdamW(device, {.weights = weights,
                   .gradients = gradients,
                   .first_moment = Flat(state, DType::kF32, n),
                   .second_moment = Flat(state + n, DType::kF32, n),
                   .parameters = parameters,
                   .learning_rate = static_cast<float>(step.learning_rate),
                   .beta1 = static_cast<float>(spec_.betas(0)),
                   .beta2 = static_cast<float>(spec_.betas(1)),
                   .epsilon = static_cast<float>(spec_.eps()),
                   .weight_decay = static_cast<float>(spec_.weight_decay()),
                   .decay_turns = DecayTurns(unit, holds),
                   .step = step.step,
                   .gradient_scale = static_cast<float>(step.gradient_scale),
                   .zero_gradients = step.zero_gradients});
  } else {
    const bool momentum = OptimizerMoments(spec_) > 0;
    Sgd(device,
        {.weights = weights,
         .gradients = gradients,
         .momentum_buffer = Flat(momentum ? state : nullptr, DType::kF32, n),
         .parameters = parameters,
         .learning_rate = static_cast<float>(step.learning_rate),
         .momentum = static_cast<float>(spec_.momentum()),
         .nesterov = spec_.nesterov(),
         .weight_decay = static_cast<float>(spec_.weight_decay()),
         .decay_turns = DecayTurns(unit, holds),
         .gradient_scale = static_cast<float>(step.gradient_scale),
         .zero_gradients = step.zero_gradients});
  }
}

}  // namespace troupe
