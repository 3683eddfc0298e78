// Patterns as shells have them, over whole texts: * for any characters, none
// too, and ? for one. All other characters are themselves.
#ifndef TROUPE_PROTO_BASE_GLOB_H_
#define TROUPE_PROTO_BASE_GLOB_H_

#include "absl/strings/string_view.h"

namespace troupe {

// Takes time in proportion to the product of both lengths at most.
bool GlobMatches(absl::string_view pattern, absl::string_view text);

}  // namespace troupe

#endif  // TROUPE_PROTO_BASE_GLOB_H_
