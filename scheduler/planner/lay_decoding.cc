#include "scheduler/planner/lay_decoding.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "proto/base/check.h"
#include "proto/base/status.h"
#include "proto/plan/at_rest.h"
#include "proto/plan/fields.h"
#include "proto/plan/mesh.h"
#include "proto/plan/precision.h"
#include "scheduler/layouts/axes.h"
#include "scheduler/layouts/zero.h"
#include "scheduler/passes/draft.h"
#include "scheduler/planner/decoding_units.h"

namespace troupe {
namespace {

constexpr char kTensorAxis[] = "tensor";

bool HaveSameDims(const Parameter& a, const Parameter& b) {
  return std::equal(a.dims().begin(), a.dims().end(), b.dims().begin(),
                    b.dims().end(), [](const Dim& x, const Dim& y) {
                      return x.SerializeAsString() == y.SerializeAsString();
                    });
}

// Gives a unit that decodes the parameters of the plan's.
absl::Status TakeParameters(const Unit& laid, Unit& unit) {
  std::map<absl::string_view, const Parameter*> by_name;
  for (const Parameter& parameter : laid.parameters()) {
    by_name[parameter.name()] = &parameter;
  }
  for (Parameter& parameter : *unit.mutable_parameters()) {
    const auto found = by_name.find(parameter.name());
    CHECK(found != by_name.end()) << parameter.name();
    if (!HaveSameDims(*found->second, parameter)) {
      return FieldError(
          "data.sample",
          absl::StrCat("ranks have other pieces of ", parameter.name(),
                       " than those with which a text is written; leave it "
                       "out, and continue texts with `troupe generate`"));
    }
    parameter = *found->second;
  }
  unit.set_flat_elements(laid.flat_elements());
  return absl::OkStatus();
}

// Whether ranks bring slices together before they compute: of zero 3, and where
// whole parameters that are summed in slices rest below the device.
bool GathersToDecode(const Plan& plan) {
  const ZeroRow row = ZeroRowOf(plan.job().parallelism());
  const std::string& rests = plan.job().memory().parameters();
  if (!row.parameters && (rests.empty() || rests == "device")) return false;
  for (const Role& role : plan.roles()) {
    for (const Placement& placement : role.placements()) {
      if (!placement.has_served() && IsDealt(placement)) return true;
    }
  }
  return false;
}

}  // namespace

absl::Status LayDecoding(Plan& plan) {
  const JobSpec& job = plan.job();
  if (!job.data().has_sample()) return absl::OkStatus();
  const int tensor = AxisSize(plan.mesh(), kTensorAxis);
  const TrainingSpec& training = job.training();
  ASSIGN_OR_RETURN(
      UnitList list,
      DecodingUnits(job.model(), {.tensor = tensor,
                                  .dtype = ComputeType(training),
                                  .lora = training.has_lora() ? &training.lora()
                                                              : nullptr}));
  const int units = static_cast<int>(list.units.size());
  CHECK_LE(units, plan.units_size());
  Decoding& decoding = *plan.mutable_decoding();
  for (int u = 0; u < units; ++u) {
    RETURN_IF_ERROR(TakeParameters(plan.units(u), list.units[u]));
    *decoding.add_units() = std::move(list.units[u]);
  }
  for (UnitTable& table : list.tables) {
    *decoding.add_tables() = std::move(table);
  }
  *decoding.mutable_batch() = std::move(list.batch);
  const bool staged = AxisSize(plan.mesh(), kPipelineAxis) > 1;
  if (staged || tensor > 1 || GathersToDecode(plan)) {
    decoding.set_world(WorldGroup(plan));
  }
  if (staged) decoding.set_transfers(TransferGroup(plan, /*gradient=*/false));
  if (tensor > 1) {
    Op::Exchange along;
    along.add_axes(kTensorAxis);
    decoding.set_exchanges(ExchangeGroup(plan, along));
  }
  return absl::OkStatus();
}

}  // namespace troupe
