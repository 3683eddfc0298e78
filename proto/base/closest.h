// "Did you mean ...?": the known name that a mistyped one was probably meant to
// be.
#ifndef TROUPE_PROTO_BASE_CLOSEST_H_
#define TROUPE_PROTO_BASE_CLOSEST_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace troupe {

// Insertions, deletions, substitutions and swaps of neighbours that turn one
// word into the other (optimal string alignment), letter case ignored.
struct TwoWords {
  absl::string_view one;
  absl::string_view other;
};
int EditDistance(const TwoWords& words);

// The candidate nearest to `word`, or empty where none is near: within a third
// of the word's length, and at least within two edits.
std::string ClosestName(absl::string_view word,
                        const std::vector<std::string>& candidates);

}  // namespace troupe

#endif  // TROUPE_PROTO_BASE_CLOSEST_H_
