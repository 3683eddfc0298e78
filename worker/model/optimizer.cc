#include "worker/model/optimizer.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "ops/adafactor.h"
#include "ops/average.h"
#include "ops/load_step.h"
#include "ops/muon.h"
#include "ops/optimizer.h"
#include "ops/tensor.h"
#include "proto/base/check.h"
#include "proto/base/matrix_workspace.h"
#include "proto/base/status.h"
#include "proto/plan/at_rest.h"
#include "proto/plan/load_ranges.h"
#include "proto/plan/optimizer_rows.h"
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

struct TrainedUnit {
  const OptimizerSpec& optimizer;
  const Unit& unit;
  std::vector<UnitState> states;
};

// What one call of an op changes.
struct Update {
  const TrainedUnit& trained;
  int rule = 0;
  Range of;
  Tensor weights;
  Tensor gradients;
  Tensor parameters;
  std::vector<Tensor> states;  // of these elements, by the rule's order
  std::vector<int64_t> decay_turns;
};

struct Elements {
  Range holds;  // what the buffers have
  Range of;     // of that, what one rule changes
  int rule = 0;
};

Update UpdateIn(const TrainedUnit& trained, const OptimizerStep& step,
                const Elements& elements) {
  const Range at = Within(elements.of, elements.holds);
  Update update = {
      .trained = trained,
      .rule = elements.rule,
      .of = elements.of,
      .weights = Part(step.weights, DType::kF32, at),
      .gradients = Part(step.gradients, step.gradients_type, at),
      .parameters = Part(step.parameters, step.parameters_type, at),
      .states = {},
      .decay_turns = DecayTurns(trained.unit, elements.of)};
  float* state = static_cast<float*>(step.state);
  const Range before = {elements.holds.begin, elements.of.begin};
  const size_t states = StatesOfRule(trained.optimizer, elements.rule).size();
  for (size_t s = 0; s < states; ++s) {
    const UnitState& lies = trained.states[s];
    const int64_t first = lies.ElementsIn(before);
    const int64_t count = lies.ElementsIn(elements.of);
    update.states.push_back(Part(state, DType::kF32, {first, first + count}));
    state += lies.ElementsIn(elements.holds);
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

// A matrix of an update, or a vector, which is one row.
struct Matrix {
  const Parameter& parameter;
  int64_t index = 0;  // among the parameter's
  int64_t begin = 0;  // of the update's elements
  int64_t rows = 0;
  int64_t columns = 0;

  // Of a tensor of the update's elements.
  Tensor Of(const Tensor& flat) const {
    if (!flat.defined()) return flat;
    return flat.Slice(0, begin, begin + rows * columns).View({rows, columns});
  }
  float WeightDecay(const OptimizerSpec& settings) const {
    return parameter.weight_decay()
               ? static_cast<float>(settings.weight_decay())
               : 0;
  }
};

// Runs for each matrix of these elements; gaps between them stay zeros.
absl::Status ForMatrices(
    const Update& update,
    absl::FunctionRef<absl::Status(const Matrix& matrix)> run) {
  for (const Parameter& parameter : update.trained.unit.parameters()) {
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
    for (int64_t m = 0; m < count; ++m) {
      RETURN_IF_ERROR(run({.parameter = parameter,
                           .index = m,
                           .begin = first + m * rows * columns,
                           .rows = rows,
                           .columns = columns}));
    }
  }
  return absl::OkStatus();
}

absl::Status UpdateMuon(Device& device, const Update& update,
                        const Rule& rule) {
  const OptimizerSpec& settings = rule.settings;
  return ForMatrices(update, [&](const Matrix& matrix) {
    return Muon(
        device,
        {.weights = matrix.Of(update.weights),
         .gradients = matrix.Of(update.gradients),
         .momentum_buffer = matrix.Of(update.states.at(0)),
         .parameters = matrix.Of(update.parameters),
         .learning_rate = rule.learning_rate,
         .momentum = static_cast<float>(settings.momentum()),
         .nesterov = settings.nesterov(),
         .weight_decay = matrix.WeightDecay(settings),
         .gradient_scale = static_cast<float>(rule.step.gradient_scale),
         .zero_gradients = rule.step.zero_gradients,
         .workspace = Tensor(rule.step.workspace, DType::kF32,
                             {MuonWorkspace(matrix.rows, matrix.columns)})});
  });
}

// Of a state of the rule, what belongs to one matrix, of which it has `count`
// elements.
Tensor StateOf(const Update& update, int state, const Matrix& matrix,
               int64_t count) {
  const OptimizerSpec& optimizer = update.trained.optimizer;
  const bool has_state =
      StateOfParameter(optimizer, update.rule,
                       StatesOfRule(optimizer, update.rule)[state],
                       matrix.parameter)
          .has_value();
  if (!has_state) return Tensor();
  const int64_t first = update.trained.states[state].ElementsIn(
                            {update.of.begin, matrix.parameter.offset()}) +
                        matrix.index * count;
  return update.states.at(state).Slice(0, first, first + count);
}

absl::Status UpdateAdafactor(Device& device, const Update& update,
                             const Rule& rule) {
  const OptimizerSpec& settings = rule.settings;
  return ForMatrices(update, [&](const Matrix& matrix) {
    Adafactor(device,
              {.weights = matrix.Of(update.weights),
               .gradients = matrix.Of(update.gradients),
               .row_moment = StateOf(update, 0, matrix, matrix.rows),
               .column_moment = StateOf(update, 1, matrix, matrix.columns),
               .second_moment = StateOf(update, 2, matrix, matrix.columns),
               .parameters = matrix.Of(update.parameters),
               .learning_rate = rule.learning_rate,
               .beta2 = 1 - std::pow(static_cast<double>(rule.step.step),
                                     settings.decay_rate()),
               .epsilon1 = settings.eps1(),
               .epsilon2 = settings.eps2(),
               .scale_parameter = settings.scale_parameter(),
               .weight_decay = matrix.WeightDecay(settings),
               .gradient_scale = static_cast<float>(rule.step.gradient_scale),
               .zero_gradients = rule.step.zero_gradients,
               .workspace =
                   Tensor(rule.step.workspace, DType::kF32,
                          {AdafactorWorkspace(matrix.rows, matrix.columns)})});
    return absl::OkStatus();
  });
}

int RuleAt(const Unit& unit, int64_t element) {
  for (const RuleRange& rule : RuleRanges(unit)) {
    if (element < rule.range.end) return rule.rule;
  }
  CHECK(false) << "element " << element << " is not trained";
  return 0;
}

using UpdateFn = absl::Status (*)(Device& device, const Update& update,
                                  const Rule& rule);

// A row for each of OptimizerRows.
struct UpdateRow {
  absl::string_view name;
  UpdateFn update;
};
constexpr UpdateRow kUpdates[] = {{"adafactor", UpdateAdafactor},
                                  {"adamw", UpdateAdamW},
                                  {"lion", UpdateLion},
                                  {"muon", UpdateMuon},
                                  {"sgd", UpdateSgd}};

// By the name of a rule; null: there is none.
UpdateFn UpdateOf(absl::string_view name) {
  for (const UpdateRow& row : kUpdates) {
    if (row.name == name) return row.update;
  }
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
    CHECK(UpdateOf(settings.name()) != nullptr || !ChangesParameters(settings))
        << "optimizer '" << settings.name() << "'";
  }
}

int64_t Optimizer::StateBytes(const Unit& unit) const {
  return StateElements(spec_, unit, TrainedRange(unit)) *
         static_cast<int64_t>(sizeof(float));
}

absl::Status Optimizer::Step(Device& device, const Unit& unit,
                             const OptimizerStep& step) const {
  CHECK(ChangesParameters(spec_)) << "a job without optimizer has no STEP";
  const Range holds = step.holds.value_or(Range{0, unit.flat_elements()});
  const TrainedUnit trained = {
      .optimizer = spec_, .unit = unit, .states = UnitStates(spec_, unit)};
  for (const RuleRange& rule : RuleRanges(unit)) {
    const OptimizerSpec& settings = rules_[rule.rule];
    const double learning_rate =
        step.learning_rate * LearningRateScale(spec_, rule.rule);
    for (const Range& of : WeightRanges(unit, Both(rule.range, holds))) {
      const Update update = UpdateIn(
          trained, step, {.holds = holds, .of = of, .rule = rule.rule});
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
    const Update now = UpdateIn(trained, step,
                                {.holds = holds,
                                 .of = load.range,
                                 .rule = RuleAt(unit, load.range.begin)});
    Average(device, {.weights = now.weights, .average = now.states.back()});
  }
  return absl::OkStatus();
}

}  // namespace troupe
