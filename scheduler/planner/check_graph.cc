#include "scheduler/planner/check_graph.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "proto/base/status.h"
#include "proto/plan/fields.h"
#include "proto/plan/model.h"
#include "scheduler/layouts/layouts.h"
#include "scheduler/pipelines/pipelines.h"

namespace troupe {

bool IsChain(const UnitList& units) {
  for (size_t u = 0; u < units.units.size(); ++u) {
    const Unit& unit = units.units[u];
    if (unit.inputs_size() != (u == 0 ? 0 : 1)) return false;
    if (u > 0 && unit.inputs(0).unit() != static_cast<int>(u) - 1) return false;
  }
  return true;
}

absl::Status CheckGraph(const JobSpec& job, const UnitList& units) {
  const ParallelismSpec& parallelism = job.parallelism();
  if (parallelism.pipeline() > 1 && !IsChain(units)) {
    ASSIGN_OR_RETURN(const Pipeline schedule,
                     FindPipeline(parallelism.pipeline_schedule()));
    if (schedule.asynchronous) {
      return FieldError(
          "parallelism.pipeline_schedule",
          absl::StrCat("stages of ", schedule.name,
                       " use weights of different ages, and a unit of ",
                       IsGraph(job.model()) ? "model.graph"
                                            : "model.num_nextn_predict_layers",
                       " reads one that is not before it: what it reads would "
                       "be of another age than the rest; ",
                       kUseSynchronous));
    }
  }
  if (!IsGraph(job.model())) return absl::OkStatus();
  for (const LayoutRow* const row : RowsInUse(parallelism)) {
    if (row->takes_graphs) continue;
    std::vector<absl::string_view> others;
    for (const LayoutRow* const other : RowsOf(row->field)) {
      if (other->takes_graphs) others.push_back(other->method);
    }
    return FieldError(
        absl::StrCat("parallelism.", MethodNameOf(*row)),
        absl::StrCat(row->method,
                     " is for the layers of the families that Troupe knows; "
                     "use ",
                     absl::StrJoin(others, " or "), " with model.graph"));
  }
  return absl::OkStatus();
}

}  // namespace troupe
