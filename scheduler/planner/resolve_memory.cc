#include "scheduler/planner/resolve_memory.h"

#include <set>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "proto/plan/fields.h"
#include "proto/plan/model.h"
#include "scheduler/tiers/recompute.h"

namespace troupe {
namespace {

constexpr char kPath[] = "memory.recompute";

absl::Status CheckUnits(const ModelSpec& model, const RecomputeSpec& spec) {
  // The embedding, the blocks and the head.
  const int count = model.num_hidden_layers() + 2;
  std::set<int> listed;
  for (const auto& [name, units] :
       {std::make_pair("units", &spec.units()),
        std::make_pair("selective_units", &spec.selective_units())}) {
    for (const int unit : *units) {
      if (unit < 0 || unit >= count) {
        return FieldError(
            absl::StrCat(kPath, ".", name),
            absl::StrCat("there is no unit ", unit,
                         ": 0 is the embedding, 1 to ", count - 2,
                         " are the blocks, ", count - 1, " is the head"));
      }
      if (!listed.insert(unit).second) {
        return FieldError(
            absl::StrCat(kPath, ".", name),
            absl::StrCat("unit ", unit, " is listed twice; list it once"));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ResolveMemory(const ModelSpec& model, MemorySpec& memory) {
  RecomputeSpec& spec = *memory.mutable_recompute();
  const bool lists = spec.units_size() + spec.selective_units_size() > 0;
  if (!spec.has_mode()) spec.set_mode(lists ? kRecomputeList : "none");
  RETURN_IF_ERROR(CheckName(kPath, spec.mode(), RecomputeModes()));
  const bool listed = spec.mode() == kRecomputeList;
  if (lists && !listed) {
    return FieldError(kPath, absl::StrCat("\"", spec.mode(),
                                          "\" is of all units, and some are "
                                          "listed too; use one or the other"));
  }
  if (IsSynthetic(model)) {
    if (spec.mode() == "none") return absl::OkStatus();
    return FieldError(kPath,
                      "synthetic units compute nothing that could be made "
                      "again; leave it out");
  }
  return CheckUnits(model, spec);
}

}  // namespace troupe
