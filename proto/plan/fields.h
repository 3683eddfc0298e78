// The checks that fields of a job share, and the form of their messages:
// "<path of the field>: <what is wrong, with the numbers>; <the way out>".
#ifndef TROUPE_PROTO_PLAN_FIELDS_H_
#define TROUPE_PROTO_PLAN_FIELDS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace troupe {

// InvalidArgument "path: what".
absl::Status FieldError(absl::string_view path, absl::string_view what);

// Refuses an absent field; `meaning` says what it should hold.
struct RequiredField {
  bool present = false;
  absl::string_view path;
  absl::string_view meaning;
};
absl::Status CheckPresent(const RequiredField& field);

// Both ends included.
struct IntegerRange {
  int64_t min = 0;
  int64_t max = 0;
};
absl::Status CheckInteger(absl::string_view path, int64_t value,
                          const IntegerRange& range);

// An open end is not included: 0 <= dropout < 1. NaN lies in no range.
struct NumberRange {
  double min = 0;
  double max = 0;
  bool min_open = false;
  bool max_open = false;
};
absl::Status CheckNumber(absl::string_view path, double value,
                         const NumberRange& range);

// One of `names`, with "did you mean" where the value is near one.
absl::Status CheckName(absl::string_view path, absl::string_view value,
                       const std::vector<std::string>& names);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_FIELDS_H_
