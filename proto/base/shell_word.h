// Words of commands and job files that we print for people to copy.
#ifndef TROUPE_PROTO_BASE_SHELL_WORD_H_
#define TROUPE_PROTO_BASE_SHELL_WORD_H_

#include <string>

#include "absl/strings/string_view.h"

namespace troupe {

// As a shell reads it back: in quotes where it has blanks or anything else that
// a shell would not take as it is.
std::string ShellWord(absl::string_view text);

// The same for a value in YAML.
std::string YamlWord(absl::string_view text);

}  // namespace troupe

#endif  // TROUPE_PROTO_BASE_SHELL_WORD_H_
