#include "tests/proto/plan/unit_faults.h"

#include <utility>

#include "gtest/gtest.h"
#include "proto/plan/check_units.h"
#include "proto/plan/model.h"

namespace troupe {

Plan PlanOfUnits(const ModelSpec& model, const LoraSpec* lora) {
  UnitList list = *ModelUnits(
      model, {.sequences = 2, .sequence_length = 5, .lora = lora});
  Plan plan;
  for (Unit& unit : list.units) *plan.add_units() = std::move(unit);
  for (UnitTable& table : list.tables) *plan.add_tables() = std::move(table);
  *plan.mutable_batch() = std::move(list.batch);
  return plan;
}

std::string UnitFaultOf(Plan plan, const std::function<void(Plan&)>& damage) {
  damage(plan);
  const absl::Status status = CheckUnits(plan);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  return std::string(status.message());
}

}  // namespace troupe
