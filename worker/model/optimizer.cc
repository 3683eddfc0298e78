#include "worker/model/optimizer.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <vector>

#include "ops/load_step.h"
#include "ops/optimizer.h"
#include "ops/tensor.h"
#include "proto/base/check.h"
#include "proto/plan/at_rest.h"
#include "proto/plan/load_ranges.h"
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

// Some elements of a buffer, as far as there is one.
Tensor Part(void* buffer, DType type, const Range& elements) {
  if (buffer == nullptr) return Tensor();
  char* const bytes = static_cast<char*>(buffer);
  return Tensor(bytes + elements.begin * DTypeBytes(type), type,
                {elements.size()});
}

Range Within(const Range& range, const Range& holds) {
  return {range.begin - holds.begin, range.end - holds.begin};
}

void StepLoad(Device& device, const OptimizerStep& step, const Range& at,
              const Parameter::Load& load) {
  LoadStep(device,
           {.weights = Part(step.weights, DType::kF32, at),
            .load = Part(step.gradients, step.gradients_type, at),
            .parameters = Part(step.parameters, step.parameters_type, at),
            .mean = step.tokens * load.per_token(),
            .bias_rate = load.bias_rate(),
            .zero_load = step.zero_gradients});
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
  for (const Range& of : WeightRanges(unit, holds)) {
    StepWeights(device, unit, step, holds, of);
  }
  for (const LoadRange& load : LoadRanges(unit, holds)) {
    StepLoad(device, step, Within(load.range, holds), load.load);
  }
}

void Optimizer::StepWeights(Device& device, const Unit& unit,
                            const OptimizerStep& step, const Range& holds,
                            const Range& of) const {
  const int64_t n = holds.size();
  const Range at = Within(of, holds);
  auto* const state = static_cast<float*>(step.state);
  const Tensor weights = Part(step.weights, DType::kF32, at);
  const Tensor gradients = Part(step.gradients, step.gradients_type, at);
  const Tensor parameters = Part(step.parameters, step.parameters_type, at);
  if (adamw_) {
    AdamW(device, {.weights = weights,
                   .gradients = gradients,
                   .first_moment = Part(state, DType::kF32, at),
                   .second_moment = Part(state + n, DType::kF32, at),
                   .parameters = parameters,
                   .learning_rate = static_cast<float>(step.learning_rate),
                   .beta1 = static_cast<float>(spec_.betas(0)),
                   .beta2 = static_cast<float>(spec_.betas(1)),
                   .epsilon = static_cast<float>(spec_.eps()),
                   .weight_decay = static_cast<float>(spec_.weight_decay()),
                   .decay_turns = DecayTurns(unit, of),
                   .step = step.step,
                   .gradient_scale = static_cast<float>(step.gradient_scale),
                   .zero_gradients = step.zero_gradients});
  } else {
    const bool momentum = OptimizerMoments(spec_) > 0;
    Sgd(device,
        {.weights = weights,
         .gradients = gradients,
         .momentum_buffer = Part(momentum ? state : nullptr, DType::kF32, at),
         .parameters = parameters,
         .learning_rate = static_cast<float>(step.learning_rate),
         .momentum = static_cast<float>(spec_.momentum()),
         .nesterov = spec_.nesterov(),
         .weight_decay = static_cast<float>(spec_.weight_decay()),
         .decay_turns = DecayTurns(unit, of),
         .gradient_scale = static_cast<float>(step.gradient_scale),
         .zero_gradients = step.zero_gradients});
  }
}

}  // namespace troupe
