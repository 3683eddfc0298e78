#include "scheduler/planner/decoding_units.h"

#include <vector>

#include "proto/base/status.h"
#include "proto/plan/model.h"
#include "proto/plan/model_fields.h"
#include "scheduler/layouts/cut_units.h"

namespace troupe {

absl::StatusOr<UnitList> DecodingUnits(const ModelSpec& model,
                                       const DecodingOptions& options) {
  ASSIGN_OR_RETURN(
      UnitList units,
      ModelUnits(WithoutModules(model),
                 {.sequences = 1,
                  .sequence_length = LongestSequenceOf(model).positions,
                  .dtype = options.dtype,
                  .lora = options.lora}));
  ParallelismSpec cut;
  cut.set_tensor(options.tensor);
  const std::vector<AxisRules> axes = RulesFor(cut);
  RETURN_IF_ERROR(CheckCuts(units, axes));
  CutUnits(axes, units);
  return units;
}

}  // namespace troupe
