#include "scheduler/planner/fields.h"

#include <algorithm>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/base/closest.h"
#include "proto/base/status.h"

namespace troupe {
namespace {

constexpr size_t kDivisorsShown = 7;

// "a, b or c".
std::string OrList(const std::vector<std::string>& words) {
  if (words.size() <= 1) return absl::StrJoin(words, "");
  return absl::StrCat(absl::StrJoin(words.begin(), words.end() - 1, ", "),
                      " or ", words.back());
}

}  // namespace

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

std::string DivisorsText(int64_t n, int64_t wanted) {
  std::vector<int64_t> divisors;
  for (int64_t i = 1; i * i <= n; ++i) {
    if (n % i != 0) continue;
    divisors.push_back(i);
    if (i != n / i) divisors.push_back(n / i);
  }
  std::sort(divisors.begin(), divisors.end(), [&](int64_t a, int64_t b) {
    const int64_t far_a = std::abs(a - wanted), far_b = std::abs(b - wanted);
    return far_a != far_b ? far_a < far_b : a < b;
  });
  if (divisors.size() > kDivisorsShown) divisors.resize(kDivisorsShown);
  std::sort(divisors.begin(), divisors.end());
  std::vector<std::string> words;
  for (const int64_t divisor : divisors) words.push_back(absl::StrCat(divisor));
  return OrList(words);
}

}  // namespace troupe
