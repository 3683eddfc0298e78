// How a message names one window of data.validation. A command that knows where
// its windows come from finds the window again in what the job says, and names
// its source (`troupe eval --choices`: the line and the choice).
#ifndef TROUPE_PROTO_PLAN_WINDOW_WORDS_H_
#define TROUPE_PROTO_PLAN_WINDOW_WORDS_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"

namespace troupe {

// "the first is window 12, counted from 0".
std::string FirstWindowWords(int64_t window);

// The window that a message with these words names; nothing: it has none.
absl::optional<int64_t> FirstWindowIn(absl::string_view message);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_WINDOW_WORDS_H_
