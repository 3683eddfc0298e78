#include "proto/base/glob.h"

#include <cstddef>

namespace troupe {

bool GlobMatches(absl::string_view pattern, absl::string_view text) {
  size_t p = 0, t = 0;
  // The last * so far, and how much of the text it takes.
  size_t star = absl::string_view::npos, taken = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      taken = t;
    } else if (p < pattern.size() &&
               (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != absl::string_view::npos) {
      p = star + 1;
      t = ++taken;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace troupe
