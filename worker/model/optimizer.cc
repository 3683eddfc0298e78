#include "worker/model/optimizer.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <vector>

#include "absl/strings/string_view.h"
#include "ops/average.h"
#include "ops/load_step.h"
#include "ops/muon.h"
#include "ops/optimizer.h"
#include "ops/tensor.h"
#include "proto/base/check.h"
#include "proto/base/muon_workspace.h"
#include "proto/base/status.h"
#include "proto/plan/at_rest.h"
#include "proto/plan/load_ranges.h"
#include "proto/plan/optimizer_rules.h"
#include "proto/plan/optimizer_states.h"
#include "proto/plan/trained.h"

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

// What one call of an op changes.
struct Update {
  const Unit& unit;
  Range of;
  Tensor weights;
  Tensor gradients;
  Tensor parameters;
  std::vector<Tensor> states;  // of these elements, in their order
  std::vector<int64_t> decay_turns;
};

struct Elements {
  Range holds;  // what the buffers have
  Range of;     // of that, what one rule changes
};

// `states`: of the unit, by StateRanges.
Update UpdateIn(const Unit& unit, const OptimizerStep& step,
                const Elements& elements, const std::vector<Range>& states) {
  const Range at = Within(elements.of, elements.holds);
  Update update = {
      .unit = unit,
      .of = elements.of,
      .weights = Part(step.weights, DType::kF32, at),
      .gradients = Part(step.gradients, step.gradients_type, at),
      .parameters = Part(step.parameters, step.parameters_type, at),
      .states = {},
      .decay_turns = DecayTurns(unit, elements.of)};
  float* state = static_cast<float*>(step.state);
  for (const Range& has : states) {
    if (Both(has, elements.of).size() > 0) {
      update.states.push_back(Part(state, DType::kF32, at));
    }
    state += Both(has, elements.holds).size();
  }
  return update;
}

struct Rule {
  const OptimizerSpec& settings;
  float learning_rate = 0;
  const OptimizerStep& step;
};

absl::Status UpdateAdamW(Device& device, const Update& update,
                         const Rule& rule) {
  const OptimizerSpec& settings = rule.settings;
  AdamW(device, {.weights = update.weights,
                 .gradients = update.gradients,
                 .first_moment = update.states.at(0),
                 .second_moment = update.states.at(1),
                 .parameters = update.parameters,
                 .learning_rate = rule.learning_rate,
                 .beta1 = static_cast<float>(settings.betas(0)),
                 .beta2 = static_cast<float>(settings.betas(1)),
                 .epsilon = static_cast<float>(settings.eps()),
                 .weight_decay = static_cast<float>(settings.weight_decay()),
                 .decay_turns = update.decay_turns,
                 .step = rule.step.step,
                 .gradient_scale = static_cast<float>(rule.step.gradient_scale),
                 .zero_gradients = rule.step.zero_gradients});
  return absl::OkStatus();
}

absl::Status UpdateLion(Device& device, const Update& update,
                        const Rule& rule) {
  const OptimizerSpec& settings = rule.settings;
  Lion(device, {.weights = update.weights,
                .gradients = update.gradients,
                .moment = update.states.at(0),
                .parameters = update.parameters,
                .learning_rate = rule.learning_rate,
                .beta1 = static_cast<float>(settings.betas(0)),
                .beta2 = static_cast<float>(settings.betas(1)),
                .weight_decay = static_cast<float>(settings.weight_decay()),
                .decay_turns = update.decay_turns,
                .gradient_scale = static_cast<float>(rule.step.gradient_scale),
                .zero_gradients = rule.step.zero_gradients});
  return absl::OkStatus();
}

absl::Status UpdateSgd(Device& device, const Update& update, const Rule& rule) {
  const OptimizerSpec& settings = rule.settings;
  Sgd(device, {.weights = update.weights,
               .gradients = update.gradients,
               .momentum_buffer =
                   settings.momentum() != 0 ? update.states.at(0) : Tensor(),
               .parameters = update.parameters,
               .learning_rate = rule.learning_rate,
               .momentum = static_cast<float>(settings.momentum()),
               .nesterov = settings.nesterov(),
               .weight_decay = static_cast<float>(settings.weight_decay()),
               .decay_turns = update.decay_turns,
               .gradient_scale = static_cast<float>(rule.step.gradient_scale),
               .zero_gradients = rule.step.zero_gradients});
  return absl::OkStatus();
}

// Of each matrix of these elements; gaps between them stay zeros.
absl::Status UpdateMuon(Device& device, const Update& update,
                        const Rule& rule) {
  const OptimizerSpec& settings = rule.settings;
  for (const Parameter& parameter : update.unit.parameters()) {
    if (parameter.offset() < update.of.begin ||
        parameter.offset() >= update.of.end) {
      continue;
    }
    const Matrices matrices = MatricesOf(parameter);
    const int64_t count = matrices.count;
    const int64_t rows = matrices.rows;
    const int64_t columns = matrices.columns;
    const int64_t first = parameter.offset() - update.of.begin;
    CHECK_LE(first + count * rows * columns, update.of.size())
        << parameter.name() << " is not whole";
    const Tensor workspace(rule.step.workspace, DType::kF32,
                           {MuonWorkspace(rows, columns)});
    for (int64_t m = 0; m < count; ++m) {
      const int64_t begin = first + m * rows * columns;
      const auto matrix = [&](const Tensor& flat) {
        if (!flat.defined()) return flat;
        return flat.Slice(0, begin, begin + rows * columns)
            .View({rows, columns});
      };
      RETURN_IF_ERROR(Muon(
          device,
          {.weights = matrix(update.weights),
           .gradients = matrix(update.gradients),
           .momentum_buffer = matrix(update.states.at(0)),
           .parameters = matrix(update.parameters),
           .learning_rate = rule.learning_rate,
           .momentum = static_cast<float>(settings.momentum()),
           .nesterov = settings.nesterov(),
           .weight_decay = parameter.weight_decay()
                               ? static_cast<float>(settings.weight_decay())
                               : 0,
           .gradient_scale = static_cast<float>(rule.step.gradient_scale),
           .zero_gradients = rule.step.zero_gradients,
           .workspace = workspace}));
    }
  }
  return absl::OkStatus();
}

using UpdateFn = absl::Status (*)(Device& device, const Update& update,
                                  const Rule& rule);

// By the name of a rule; null: there is none.
UpdateFn UpdateOf(absl::string_view name) {
  if (name == "adamw") return UpdateAdamW;
  if (name == "lion") return UpdateLion;
  if (name == "muon") return UpdateMuon;
  if (name == "sgd") return UpdateSgd;
  return nullptr;
}

}  // namespace

double AverageDecay(const EmaSpec& ema, int64_t step) {
  if (!ema.warmup()) return ema.decay();
  const double t = static_cast<double>(step);
  return std::min(ema.decay(), (1 + t) / (10 + t));
}

double ClipCoefficient(double norm, double norm_max) {
  if (norm_max == 0) return 1.0;
  return std::min(1.0, norm_max / (norm + 1e-6));
}

Optimizer::Optimizer(const OptimizerSpec& spec) : spec_(spec) {
  for (int rule = 0; rule < RuleCount(spec); ++rule) {
    const OptimizerSpec& settings = rules_.emplace_back(SettingsOf(spec, rule));
    CHECK(UpdateOf(settings.name()) != nullptr || settings.name() == "none")
        << "optimizer '" << settings.name() << "'";
  }
}

int64_t Optimizer::StateBytes(const Unit& unit) const {
  return StateElements(spec_, unit, TrainedRange(unit)) *
         static_cast<int64_t>(sizeof(float));
}

absl::Status Optimizer::Step(Device& device, const Unit& unit,
                             const OptimizerStep& step) const {
  CHECK(spec_.name() != "none") << "a job without optimizer has no STEP";
  const Range holds = step.holds.value_or(Range{0, unit.flat_elements()});
  const std::vector<Range> states = StateRanges(spec_, unit);
  for (const RuleRange& rule : RuleRanges(unit)) {
    const OptimizerSpec& settings = rules_[rule.rule];
    const double learning_rate =
        step.learning_rate * LearningRateScale(spec_, rule.rule);
    for (const Range& of : WeightRanges(unit, Both(rule.range, holds))) {
      const Update update =
          UpdateIn(unit, step, {.holds = holds, .of = of}, states);
      RETURN_IF_ERROR(UpdateOf(settings.name())(
          device, update,
          {.settings = settings,
           .learning_rate = static_cast<float>(learning_rate),
           .step = step}));
      if (!spec_.has_ema()) continue;
      Average(device, {.weights = update.weights,
                       .average = update.states.back(),
                       .decay = AverageDecay(spec_.ema(), step.step)});
    }
  }
  for (const LoadRange& load : LoadRanges(unit, holds)) {
    StepLoad(device, step, Within(load.range, holds), load.load);
    if (!spec_.has_ema()) continue;
    const Update now =
        UpdateIn(unit, step, {.holds = holds, .of = load.range}, states);
    Average(device, {.weights = now.weights, .average = now.states.back()});
  }
  return absl::OkStatus();
}

}  // namespace troupe
