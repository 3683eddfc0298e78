// Values as texts: as `{{ value }}` prints them (Python's str), within lists
// and dicts (repr), and as the filter `tojson` of transformers writes them
// (json.dumps).
#ifndef TROUPE_STORAGE_CHAT_TEMPLATE_VALUE_TEXT_H_
#define TROUPE_STORAGE_CHAT_TEMPLATE_VALUE_TEXT_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "storage/chat_template/budget.h"
#include "storage/chat_template/value.h"

namespace troupe::chat {

// InvalidArgument for a namespace, a macro, a view and an iterator;
// ResourceExhausted past the budget.
absl::StatusOr<std::string> TextOf(const Value& value, Budget& budget);

struct JsonStyle {
  bool ascii = false;  // ensure_ascii
  bool sort_keys = false;
  // Of each level; none: all on one line.
  std::optional<std::string> indent = std::nullopt;
  std::string item_separator = ", ";
  std::string key_separator = ": ";
};

// InvalidArgument for what JSON does not have; ResourceExhausted past the
// budget.
absl::StatusOr<std::string> JsonOf(const Value& value, const JsonStyle& style,
                                   Budget& budget);

}  // namespace troupe::chat

#endif  // TROUPE_STORAGE_CHAT_TEMPLATE_VALUE_TEXT_H_
