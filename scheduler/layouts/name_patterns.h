// Patterns of parameters' names in a job (training.freeze, optimizer.groups):
// names are those of Hugging Face's files, patterns are whole ones
// (proto/base/glob.h).
#ifndef TROUPE_SCHEDULER_LAYOUTS_NAME_PATTERNS_H_
#define TROUPE_SCHEDULER_LAYOUTS_NAME_PATTERNS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "proto/plan/unit_list.h"

namespace troupe {

// Of all units, in their order.
std::vector<std::string> ParameterNames(const UnitList& units);

// InvalidArgument "field: ..." where a pattern matches none of the names, with
// those that are near.
absl::Status CheckMatchesSome(absl::string_view field,
                              const std::string& pattern,
                              const std::vector<std::string>& names);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_LAYOUTS_NAME_PATTERNS_H_
