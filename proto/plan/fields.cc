#include "proto/plan/fields.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "proto/base/choices.h"
#include "proto/base/closest.h"
#include "proto/base/status.h"

namespace troupe {
absl::Status FieldError(absl::string_view path, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", what));
}

absl::Status CheckPresent(const RequiredField& field) {
  if (field.present) return absl::OkStatus();
  return FieldError(field.path,
                    absl::StrCat("is missing; give ", field.meaning));
}

absl::Status CheckInteger(absl::string_view path, int64_t value,
                          const IntegerRange& range) {
  if (value >= range.min && value <= range.max) return absl::OkStatus();
  return FieldError(path, absl::StrCat(value, " is out of range; use ",
                                       range.min, " to ", range.max));
}

absl::Status CheckNumber(absl::string_view path, double value,
                         const NumberRange& range) {
  const bool above = range.min_open ? value > range.min : value >= range.min;
  const bool below = range.max_open ? value < range.max : value <= range.max;
  if (above && below) return absl::OkStatus();
  return FieldError(
      path, absl::StrCat(value, " is out of range; use a number ",
                         range.min_open ? "above " : "from ", range.min,
                         range.max_open ? " and below " : " to ", range.max));
}

absl::Status CheckName(absl::string_view path, absl::string_view value,
                       const std::vector<std::string>& names) {
  if (std::find(names.begin(), names.end(), value) != names.end()) {
    return absl::OkStatus();
  }
  const std::string closest = ClosestName(value, names);
  const std::string hint =
      closest.empty() ? "" : absl::StrCat("; did you mean \"", closest, "\"?");
  return FieldError(path, absl::StrCat("there is no \"", value, "\"; use ",
                                       OrList(names), hint));
}

}  // namespace troupe
