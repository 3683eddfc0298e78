#include "proto/plan/architectures/experts_section.h"

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "proto/plan/fields.h"
#include "proto/plan/tensor_spec.h"

namespace troupe {

int AppendExperts(const ExpertsSection& section, int x, UnitBuilder& unit) {
  const Dim experts = DimOf({{Dim::EXPERTS, section.experts}});
  const Dim intermediate = DimOf({{Dim::INTERMEDIATE, section.intermediate}});
  const int logits = unit.Linear({.x = x,
                                  .projections = {{section.router, experts}},
                                  .output = "router logits",
                                  .init_std = section.init_std,
                                  .f32 = true});
  const UnitBuilder::RouteOutputs route =
      unit.Route({.logits = logits,
                  .choices = section.choices,
                  .renormalise = section.renormalise});
  const UnitBuilder::Dispatched rows = unit.Dispatch(x, route, section.experts);
  const int gate_up =
      unit.GroupedLinear({.x = rows.rows,
                          .offsets = rows.offsets,
                          .experts = section.experts,
                          .projections = {{section.gate, intermediate},
                                          {section.up, intermediate}},
                          .output = "gate_up",
                          .init_std = section.init_std});
  const int down =
      unit.GroupedLinear({.x = unit.SwiGlu(gate_up, rows.gates),
                          .offsets = rows.offsets,
                          .experts = section.experts,
                          .projections = {{section.down, unit.ColumnsOf(x)}},
                          .output = "rows down",
                          .init_std = section.init_std});
  return unit.Combine(down, rows);
}

absl::Status CheckExperts(const ModelSpec& model) {
  RETURN_IF_ERROR(CheckInteger("model.num_experts", model.num_experts(),
                               {.min = 1, .max = kExpertsMax}));
  return CheckInteger("model.num_experts_per_tok", model.num_experts_per_tok(),
                      {.min = 1, .max = model.num_experts()});
}

}  // namespace troupe
