// Text from elsewhere, fit for a line of a log, of a table or of a message:
// what would begin another line or speak to a terminal is escaped as C does it,
// and what is too long is cut.
#ifndef TROUPE_PROTO_BASE_ONE_LINE_H_
#define TROUPE_PROTO_BASE_ONE_LINE_H_

#include <string>

#include "absl/strings/string_view.h"

namespace troupe {

// At most `bytes_max` bytes and the few words that tell of a cut, which falls
// between two characters. UTF-8 stays as it is.
std::string OneLine(absl::string_view text, size_t bytes_max);

// Whether a line may have the text as it is.
bool IsOneLine(absl::string_view text, size_t bytes_max);

}  // namespace troupe

#endif  // TROUPE_PROTO_BASE_ONE_LINE_H_
