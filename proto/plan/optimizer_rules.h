// The rules by which STEP changes the parameters of a job. Rule 0 is what the
// optimizer's own settings say; rule i is what its group i - 1 makes of them
// (optimizer.groups). Unit.Part.rule says which rule a part of a unit has.
//
// All REQUIRE a resolved spec, and a rule below RuleCount.
#ifndef TROUPE_PROTO_PLAN_OPTIMIZER_RULES_H_
#define TROUPE_PROTO_PLAN_OPTIMIZER_RULES_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "proto/job.pb.h"
#include "proto/plan/layout.h"
#include "proto/plan/optimizer_rows.h"
#include "proto/unit.pb.h"

namespace troupe {

inline int RuleCount(const OptimizerSpec& optimizer) {
  return 1 + optimizer.groups_size();
}

// The rule of a parameter: that of the last group with a pattern for its name.
int RuleOf(const OptimizerSpec& optimizer, absl::string_view parameter);

// All settings of a rule, as those of an optimizer without groups. Its learning
// rate is the job's times LearningRateScale.
OptimizerSpec SettingsOf(const OptimizerSpec& optimizer, int rule);
double LearningRateScale(const OptimizerSpec& optimizer, int rule);

// What a rule needs; of a job that changes nothing, nothing.
const OptimizerRow& RowOfRule(const OptimizerSpec& optimizer, int rule);
// Whether an update of the rule is of whole matrices, and not of each element
// by itself; and of those, whether vectors are updated, too: each as a whole.
bool UpdatesMatrices(const OptimizerSpec& optimizer, int rule);
bool UpdatesVectors(const OptimizerSpec& optimizer, int rule);

// "adamw", ...; and the field of the job that says so: "optimizer.name",
// "optimizer.groups[0].name", ...
const std::string& NameOfRule(const OptimizerSpec& optimizer, int rule);
std::string NameFieldOfRule(int rule);

// The matrices of a parameter that such a rule trains: itself, or one for each
// index of the first of three dims; a vector is one row. What a rank has of it.
struct Matrices {
  int64_t count = 1;
  int64_t rows = 0;
  int64_t columns = 0;
};
Matrices MatricesOf(const Parameter& parameter);

// Bytes that a STEP of the unit works in; 0: its rules need none.
int64_t StepWorkspaceBytes(const OptimizerSpec& optimizer, const Unit& unit);

// The elements of a unit's flat buffer that are trained by one rule. Neighbours
// have different rules.
struct RuleRange {
  Range range;
  int rule = 0;
};
// All that are trained, in ascending order. REQUIRES the unit's parts.
std::vector<RuleRange> RuleRanges(const Unit& unit);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_OPTIMIZER_RULES_H_
