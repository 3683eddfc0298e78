#include "worker/model/optimizer.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <vector>

#include "ops/optimizer.h"
#include "ops/tensor.h"
#include "proto/base/check.h"
#include "proto/plan/at_rest.h"

namespace troupe {
namespace {

struct Run {
  Range elements;  // of what is held
  bool weight_decay = false;
};

// What is held of the flat buffer, in as few runs as weight decay allows. An
// alignment gap goes with the parameter before it: zeros that stay zeros.
std::vector<Run> RunsOf(const Unit& unit, const Range& holds) {
  std::map<int64_t, bool> decays;  // by offset
  for (const Parameter& parameter : unit.parameters()) {
    decays[parameter.offset()] = parameter.weight_decay();
  }
  std::vector<Run> runs;
  for (auto at = decays.begin(); at != decays.end(); ++at) {
    const auto next = std::next(at);
    const Range here = Both(
        {at->first, next == decays.end() ? unit.flat_elements() : next->first},
        holds);
    if (here.size() == 0) continue;
    if (runs.empty() || runs.back().weight_decay != at->second) {
      const int64_t begin = here.begin - holds.begin;
      runs.push_back({.elements = {begin, begin}, .weight_decay = at->second});
    }
    runs.back().elements.end = here.end - holds.begin;
  }
  return runs;
}

// Elements of a flat buffer, as far as there is one.
Tensor Flat(void* buffer, DType type, const Range& range) {
  if (buffer == nullptr) return Tensor();
  return Tensor(static_cast<char*>(buffer) +
                    range.begin * static_cast<int64_t>(DTypeBytes(type)),
                type, {range.size()});
}

// Of f32, after `first` others.
Tensor Flat(void* buffer, const Range& range, int64_t first = 0) {
  return Flat(buffer, DType::kF32, {first + range.begin, first + range.end});
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
  const int64_t copies = adamw_ ? 2 : spec_.momentum() != 0 ? 1 : 0;
  return copies * flat_elements * static_cast<int64_t>(sizeof(float));
}

void Optimizer::Step(Device& device, const Unit& unit,
                     const OptimizerStep& step) const {
  CHECK(spec_.name() != "none") << "a job without optimizer has no STEP";
  const Range holds = step.holds.value_or(Range{0, unit.flat_elements()});
  for (const auto& [range, decays] : RunsOf(unit, holds)) {
    const float weight_decay =
        decays ? static_cast<float>(spec_.weight_decay()) : 0.0f;
    if (adamw_) {
      AdamW(device,
            {.weights = Flat(step.weights, range),
             .gradients = Flat(step.gradients, step.gradients_type, range),
             .first_moment = Flat(step.state, range),
             .second_moment = Flat(step.state, range, holds.size()),
             .parameters = Flat(step.parameters, step.parameters_type, range),
             .learning_rate = static_cast<float>(step.learning_rate),
             .beta1 = static_cast<float>(spec_.betas(0)),
             .beta2 = static_cast<float>(spec_.betas(1)),
             .epsilon = static_cast<float>(spec_.eps()),
             .weight_decay = weight_decay,
             .step = step.step,
             .gradient_scale = static_cast<float>(step.gradient_scale),
             .zero_gradients = step.zero_gradients});
    } else {
      Sgd(device,
          {.weights = Flat(step.weights, range),
           .gradients = Flat(step.gradients, step.gradients_type, range),
           .momentum_buffer =
               spec_.momentum() != 0 ? Flat(step.state, range) : Tensor(),
           .parameters = Flat(step.parameters, step.parameters_type, range),
           .learning_rate = static_cast<float>(step.learning_rate),
           .momentum = static_cast<float>(spec_.momentum()),
           .nesterov = spec_.nesterov(),
           .weight_decay = weight_decay,
           .gradient_scale = static_cast<float>(step.gradient_scale),
           .zero_gradients = step.zero_gradients});
    }
  }
}

}  // namespace troupe
