#include "proto/plan/architectures/experts_section.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "proto/base/choices.h"
#include "proto/base/status.h"
#include "proto/plan/fields.h"
#include "proto/plan/tensor_spec.h"

namespace troupe {

namespace {

bool HasCapacity(const ExpertsSpec& training) {
  return training.routing() != "dropless";
}

// The gates' sum is what the model says, or the recipe.
bool Renormalises(const ExpertsSection& section, const ExpertsSpec& training) {
  if (training.routing() == "gshard") return true;
  return training.routing() != "switch" && section.renormalise;
}

void AppendLosses(const ExpertsSection& section, const ExpertsSpec& training,
                  const UnitBuilder::RouteOutputs& route, UnitBuilder& unit) {
  UnitBuilder::RouterLossArgs loss = {
      .route = route, .z_coefficient = training.z_coefficient()};
  const bool beside_bias =
      training.balance() == "bias" && training.balance_coefficient() > 0;
  if (training.balance() == "sequence" || beside_bias) {
    loss.load = unit.RouterLoad(route.choices, section.experts);
    loss.balance_coefficient = training.balance_coefficient();
  } else if (training.balance() == "global") {
    loss.shares = section.router + ".load";
    loss.balance_coefficient = training.balance_coefficient();
  }
  unit.RouterLoss(loss);
}

// Of one expert, which every token chooses: the gate is its score.
int SharedGates(const std::string& weight, double init_std, int x,
                UnitBuilder& unit) {
  const Dim one = DimOf({{Dim::STATISTICS, 1}});
  const int logit = unit.Linear({.x = x,
                                 .projections = {{weight, one}},
                                 .output = "shared expert logit",
                                 .init_std = init_std,
                                 .f32 = true});
  return unit
      .Route({.logits = logit,
              .choices = 1,
              .sigmoid = true,
              .prefix = "shared expert "})
      .gates;
}

// The hidden columns of the chosen experts, weighted by their gates.
int AppendHidden(const ExpertsSection& section,
                 const UnitBuilder::Dispatched& rows, UnitBuilder& unit) {
  const Dim intermediate = DimOf({{Dim::INTERMEDIATE, section.intermediate}});
  const bool gated = !section.gate.empty();
  UnitBuilder::GroupedLinearArgs args = {.x = rows.rows,
                                         .offsets = rows.offsets,
                                         .experts = section.experts,
                                         .output = gated ? "gate_up" : "up",
                                         .init_std = section.init_std};
  if (gated) args.projections.push_back({section.gate, intermediate});
  args.projections.push_back({section.up, intermediate});
  const int hidden = unit.GroupedLinear(args);
  return gated ? unit.SwiGlu(hidden, rows.gates)
               : unit.Gelu(hidden, /*exact=*/false, rows.gates);
}

int AppendShared(const ExpertsSection::Shared& shared, double init_std, int x,
                 UnitBuilder& unit) {
  const Dim intermediate = DimOf({{Dim::INTERMEDIATE, shared.intermediate}});
  const int gates = shared.weight.empty()
                        ? -1
                        : SharedGates(shared.weight, init_std, x, unit);
  const int gate_up = unit.Linear(
      {.x = x,
       .projections = {{shared.gate, intermediate}, {shared.up, intermediate}},
       .output = "shared gate_up",
       .init_std = init_std});
  const int y = unit.Linear({.x = unit.SwiGlu(gate_up, gates),
                             .projections = {{shared.down, unit.ColumnsOf(x)}},
                             .output = "shared down",
                             .init_std = init_std});
  return y;
}

}  // namespace

int64_t CapacityPlaces(const ExpertsSpec& training, int64_t choices,
                       int64_t experts, int64_t sequence_length) {
  const double mean = static_cast<double>(choices * sequence_length) /
                      static_cast<double>(experts);
  const double places = std::ceil(training.capacity_factor() * mean);
  return static_cast<int64_t>(
      std::min(std::max(places, 1.0), static_cast<double>(sequence_length)));
}

int AppendExperts(const ExpertsSection& section, const ExpertsSpec& training,
                  int64_t sequence_length, int x, UnitBuilder& unit) {
  const Dim experts = DimOf({{Dim::EXPERTS, section.experts}});
  const int logits = unit.Linear({.x = x,
                                  .projections = {{section.router, experts}},
                                  .output = "router logits",
                                  .init_std = section.init_std,
                                  .f32 = true});
  const bool biased = training.balance() == "bias";
  UnitBuilder::RouteOutputs route =
      unit.Route({.logits = logits,
                  .choices = section.choices,
                  .sigmoid = section.sigmoid,
                  .renormalise = Renormalises(section, training),
                  .scale = section.scale,
                  .groups = section.groups,
                  .groups_used = section.groups_used,
                  .bias = biased || section.bias
                              ? section.router + ".e_score_correction_bias"
                              : "",
                  .bias_rate = biased ? training.bias_rate() : 0,
                  .bias_of_model = section.bias,
                  .logsumexp = training.z_coefficient() > 0});
  AppendLosses(section, training, route, unit);
  if (HasCapacity(training)) {
    route.gates =
        unit.Capacity(route, section.experts,
                      CapacityPlaces(training, section.choices, section.experts,
                                     sequence_length));
  }
  const UnitBuilder::Dispatched rows = unit.Dispatch(x, route, section.experts);
  const int down = unit.GroupedLinear(
      {.x = AppendHidden(section, rows, unit),
       .offsets = rows.offsets,
       .experts = section.experts,
       .projections = {{section.down, unit.ColumnsOf(x)}},
       .output = "rows down",
       .init_std = section.down_init_std > 0 ? section.down_init_std
                                             : section.init_std});
  const int combined = unit.Combine(down, rows);
  if (!section.shared.has_value()) return combined;
  return unit.Add(
      {.x = combined,
       .residual = AppendShared(*section.shared, section.init_std, x, unit)});
}

void SetExpertsDefaults(ModelSpec& model) {
  constexpr double kCapacityFactor = 1.25;
  constexpr double kGlobalCoefficient = 0.01;
  constexpr double kSequenceCoefficient = 1e-4;
  constexpr double kBiasRate = 1e-3;
  ExpertsSpec& experts = *model.mutable_experts();
  if (!experts.has_routing()) experts.set_routing("dropless");
  if (!experts.has_balance()) experts.set_balance("none");
  if (!experts.has_z_coefficient()) experts.set_z_coefficient(0);
  if (!experts.has_load()) experts.set_load("uniform");
  if (HasCapacity(experts) && !experts.has_capacity_factor()) {
    experts.set_capacity_factor(kCapacityFactor);
  }
  const bool by_sequence = experts.balance() == "sequence";
  if ((by_sequence || experts.balance() == "global") &&
      !experts.has_balance_coefficient()) {
    experts.set_balance_coefficient(by_sequence ? kSequenceCoefficient
                                                : kGlobalCoefficient);
  }
  if (experts.balance() == "bias" && !experts.has_bias_rate()) {
    experts.set_bias_rate(kBiasRate);
  }
}

namespace {

// A field that means something with other values of another field only.
absl::Status Idle(bool set, bool used, const char* name,
                  absl::string_view needs) {
  if (!set || used) return absl::OkStatus();
  return FieldError(absl::StrCat("model.experts.", name),
                    absl::StrCat("is used with ", needs, "; leave it out"));
}

absl::Status CheckRouting(const ModelSpec& model) {
  const ExpertsSpec& experts = model.experts();
  RETURN_IF_ERROR(CheckName("model.experts.routing", experts.routing(),
                            {"dropless", "capacity", "gshard", "switch"}));
  RETURN_IF_ERROR(Idle(experts.has_capacity_factor(), HasCapacity(experts),
                       "capacity_factor",
                       "routing capacity, gshard or switch"));
  if (HasCapacity(experts)) {
    RETURN_IF_ERROR(CheckNumber("model.experts.capacity_factor",
                                experts.capacity_factor(),
                                {.min = 0, .max = 1e6, .min_open = true}));
  }
  const bool gshard = experts.routing() == "gshard";
  const int needed = gshard ? 2 : 1;
  if ((!gshard && experts.routing() != "switch") ||
      model.num_experts_per_tok() == needed) {
    return absl::OkStatus();
  }
  return FieldError("model.experts.routing",
                    absl::StrCat(experts.routing(), " gives each token ",
                                 needed, gshard ? " experts" : " expert",
                                 ", but model.num_experts_per_tok is ",
                                 model.num_experts_per_tok(), "; set that to ",
                                 needed, ", or use capacity"));
}

absl::Status CheckBalance(const ExpertsSpec& experts) {
  RETURN_IF_ERROR(CheckName("model.experts.balance", experts.balance(),
                            {"none", "sequence", "global", "bias"}));
  RETURN_IF_ERROR(Idle(experts.has_balance_coefficient(),
                       experts.balance() != "none", "balance_coefficient",
                       "balance sequence, global or bias"));
  RETURN_IF_ERROR(Idle(experts.has_bias_rate(), experts.balance() == "bias",
                       "bias_rate", "balance bias"));
  if (experts.balance() != "none") {
    RETURN_IF_ERROR(CheckNumber("model.experts.balance_coefficient",
                                experts.balance_coefficient(),
                                {.min = 0, .max = 1e6}));
  }
  if (experts.balance() == "bias") {
    RETURN_IF_ERROR(CheckNumber("model.experts.bias_rate", experts.bias_rate(),
                                {.min = 0, .max = 1, .min_open = true}));
  }
  return CheckNumber("model.experts.z_coefficient", experts.z_coefficient(),
                     {.min = 0, .max = 1e6});
}

absl::Status CheckLoad(const ExpertsSpec& experts) {
  if (experts.has_load()) {
    RETURN_IF_ERROR(CheckName("model.experts.load", experts.load(),
                              {"uniform", "measured"}));
  }
  const bool measured = experts.load() == "measured";
  RETURN_IF_ERROR(
      Idle(experts.has_load_file(), measured, "load_file", "load measured"));
  RETURN_IF_ERROR(
      Idle(!experts.measured().empty(), measured, "measured", "load measured"));
  if (measured && experts.measured().empty()) {
    return FieldError("model.experts.load",
                      "measured needs model.experts.load_file, a file with "
                      "what /api/v1/jobs/ID/experts of a run has answered");
  }
  for (int i = 0; i < experts.measured_size(); ++i) {
    double all = 0;
    for (const double load : experts.measured(i).load()) {
      RETURN_IF_ERROR(
          CheckNumber(absl::StrCat("model.experts.measured[", i, "].load"),
                      load, {.min = 0, .max = 1e6}));
      all += load;
    }
    if (all > 0) continue;
    return FieldError(absl::StrCat("model.experts.measured[", i, "].load"),
                      "no expert has any load");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckExperts(const ModelSpec& model) {
  RETURN_IF_ERROR(CheckInteger("model.num_experts", model.num_experts(),
                               {.min = 1, .max = kExpertsMax}));
  RETURN_IF_ERROR(CheckInteger("model.num_experts_per_tok",
                               model.num_experts_per_tok(),
                               {.min = 1, .max = model.num_experts()}));
  RETURN_IF_ERROR(CheckRouting(model));
  RETURN_IF_ERROR(CheckBalance(model.experts()));
  return CheckLoad(model.experts());
}

}  // namespace troupe
