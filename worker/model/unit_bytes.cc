#include "worker/model/unit_bytes.h"

#include "absl/strings/str_cat.h"

namespace troupe {

absl::Status CheckUnitBytes(const Unit& unit, const UnitBytes& bytes) {
  const struct {
    const char* name;
    int64_t plan;
    int64_t layout;
  } rows[] = {
      {"activation", unit.activation_bytes(), bytes.activation},
      {"stash", unit.stash_bytes(), bytes.stash},
      {"weight stash", unit.weight_stash_bytes(), bytes.weight_stash},
      {"workspace", unit.workspace_bytes(), bytes.workspace},
  };
  for (const auto& row : rows) {
    if (row.plan == row.layout) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "the plan gives a ", Unit::Kind_Name(unit.kind()), " unit ", row.plan,
        " bytes of ", row.name, ", but it needs ", row.layout,
        "; scheduler and worker must be of one build"));
  }
  return absl::OkStatus();
}

}  // namespace troupe
