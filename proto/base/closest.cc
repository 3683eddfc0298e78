#include "proto/base/closest.h"

#include <algorithm>

#include "absl/strings/ascii.h"

namespace troupe {

int EditDistance(const TwoWords& words) {
  const std::string a = absl::AsciiStrToLower(words.one);
  const std::string b = absl::AsciiStrToLower(words.other);
  // Three rows of the table: for i - 2, i - 1 and i letters of a.
  std::vector<int> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) above[j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const int substitute = above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({substitute, above[j] + 1, row[j - 1] + 1});
      const bool swapped =
          i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, above);
    std::swap(above, row);
  }
  return above[b.size()];
}

std::string ClosestName(absl::string_view word,
                        const std::vector<std::string>& candidates) {
  const int near = std::max<int>(2, static_cast<int>(word.size()) / 3);
  std::string closest;
  int least = near + 1;
  for (const std::string& candidate : candidates) {
    const int distance = EditDistance({.one = word, .other = candidate});
    // A name none of whose letters survive is no suggestion.
    if (distance >= static_cast<int>(candidate.size())) continue;
    if (distance < least) {
      least = distance;
      closest = candidate;
    }
  }
  return closest;
}

}  // namespace troupe
