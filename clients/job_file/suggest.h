// The field that someone meant by an unknown name: a typo, or what another tool
// calls the same thing (n_layer, learning_rate), which a table knows.
#ifndef TROUPE_CLIENTS_JOB_FILE_SUGGEST_H_
#define TROUPE_CLIENTS_JOB_FILE_SUGGEST_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace troupe {

// The candidate that `name` most likely stands for; empty where none is near.
std::string Suggest(absl::string_view name,
                    const std::vector<std::string>& candidates);

// The job file's name for what another tool calls `name`: "n_layer" is
// "num_hidden_layers". `name` itself where it is in no table.
std::string OurName(absl::string_view name);

}  // namespace troupe

#endif  // TROUPE_CLIENTS_JOB_FILE_SUGGEST_H_
