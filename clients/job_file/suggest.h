// "did you mean ...?": the name that someone probably meant. A typo is the
// nearest name by edit distance; names that other tools use for the same thing
// (n_layer, learning_rate) are in a table.
#ifndef TROUPE_CLIENTS_JOB_FILE_SUGGEST_H_
#define TROUPE_CLIENTS_JOB_FILE_SUGGEST_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace troupe {

// Insertions, deletions, substitutions and swaps of neighbours that turn `a`
// into `b` (optimal string alignment). O(|a| |b|).
int EditDistance(absl::string_view a, absl::string_view b);

// The candidate that `name` most likely stands for; empty where none is near.
std::string Suggest(absl::string_view name,
                    const std::vector<std::string>& candidates);

// The job file's name for what another tool calls `name`: "n_layer" is
// "num_hidden_layers". `name` itself where it is in no table.
std::string OurName(absl::string_view name);

}  // namespace troupe

#endif  // TROUPE_CLIENTS_JOB_FILE_SUGGEST_H_
