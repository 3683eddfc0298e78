// The rows of the table of layouts that a job uses, by axis, and whether what
// they cut can be cut so.
#ifndef TROUPE_SCHEDULER_LAYOUTS_AXIS_RULES_H_
#define TROUPE_SCHEDULER_LAYOUTS_AXIS_RULES_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "proto/job.pb.h"
#include "proto/plan.pb.h"
#include "proto/plan/unit_list.h"
#include "scheduler/layouts/layouts.h"

namespace troupe {

// What a row does along one of its axes.
struct AxisRules {
  std::string axis;  // of the mesh
  int size = 1;
  SizeField field;             // where a user says the size
  std::vector<DimRule> rules;  // the first that fits a tensor cuts it
  decltype(RowAxis::prepare) prepare = nullptr;
  decltype(RowAxis::rewrite) rewrite = nullptr;
  // Optional: makes several ops of one that needs what other ranks have, of a
  // table that all axes have cut.
  std::function<void(UnitTable& table)> finish;
  // Of the axes that have a rule in the order of the mesh, those further in.
  std::vector<std::string> further_in;

  AxisSpan span() const { return {axis, size}; }
};

// The rule for dims of a kind; nullptr where the axis does not cut them.
const DimRule* RuleOf(const AxisRules& axis, Dim::Kind kind);

// Of the rows that the job uses, if all units do as `parallelism` itself says.
std::vector<AxisRules> RulesFor(const ParallelismSpec& parallelism);

// Of the rows that a strategy uses, along the factors of the job's mesh.
// `path`: the field that a user says it in. REQUIRES that its own factors fit
// these (SpansOf, axes.h).
std::vector<AxisRules> RulesFor(const ParallelismSpec& strategy,
                                const std::vector<Axis>& factors,
                                const std::string& path);

// InvalidArgument where an axis cuts experts and none of the units has any.
absl::Status CheckHasExperts(const UnitList& units,
                             const std::vector<AxisRules>& axes);

// InvalidArgument where an axis does not divide what it is to cut: names
// parallelism.<axis>, the field whose size it is, and the nearest sizes of the
// axis that do.
absl::Status CheckCuts(const UnitList& units,
                       const std::vector<AxisRules>& axes);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_LAYOUTS_AXIS_RULES_H_
