#include "scheduler/layouts/name_patterns.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/choices.h"
#include "proto/base/glob.h"
#include "proto/base/one_line.h"
#include "proto/plan/fields.h"

namespace troupe {
namespace {

// Least changes of single characters that make `text` of a part of `name`
// (Sellers, 1980).
int Distance(absl::string_view text, absl::string_view name) {
  std::vector<int> row(name.size() + 1, 0);
  for (size_t i = 1; i <= text.size(); ++i) {
    int diagonal = row[0];
    row[0] = static_cast<int>(i);
    for (size_t j = 1; j <= name.size(); ++j) {
      const int same = diagonal + (text[i - 1] == name[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({same, row[j] + 1, row[j - 1] + 1});
    }
  }
  return *std::min_element(row.begin(), row.end());
}

// Of a pattern, for the nearest names: no name is longer.
constexpr size_t kSearchedMax = 256;

// The nearest names, at most three: "a, b or c".
std::string NearestText(const std::string& pattern,
                        const std::vector<std::string>& names) {
  constexpr size_t kShown = 3;
  std::string text = pattern.substr(0, kSearchedMax);
  text.erase(std::remove_if(text.begin(), text.end(),
                            [](char c) { return c == '*' || c == '?'; }),
             text.end());
  std::vector<std::pair<int, std::string>> ranked;
  for (const std::string& name : names) {
    ranked.emplace_back(Distance(text, name), name);
  }
  std::stable_sort(
      ranked.begin(), ranked.end(),
      [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> nearest;
  for (size_t i = 0; i < std::min(kShown, ranked.size()); ++i) {
    nearest.push_back(ranked[i].second);
  }
  return OrList(nearest);
}

}  // namespace

std::vector<std::string> ParameterNames(const UnitList& units) {
  std::vector<std::string> names;
  for (const Unit& unit : units.units) {
    for (const Parameter& parameter : unit.parameters()) {
      names.push_back(parameter.name());
    }
  }
  return names;
}

absl::Status CheckMatchesSome(absl::string_view field,
                              const std::string& pattern,
                              const std::vector<std::string>& names) {
  const bool matches = std::any_of(names.begin(), names.end(),
                                   [&pattern](const std::string& name) {
                                     return GlobMatches(pattern, name);
                                   });
  if (matches) return absl::OkStatus();
  if (names.empty()) {
    return FieldError(field, "the model has no parameters");
  }
  return FieldError(field,
                    absl::StrCat("\"", OneLine(pattern, kSearchedMax),
                                 "\" matches no parameter; did you mean ",
                                 NearestText(pattern, names),
                                 "? * stands for any characters"));
}

}  // namespace troupe
