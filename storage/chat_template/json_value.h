// JSON as values of a chat template.
#ifndef TROUPE_STORAGE_CHAT_TEMPLATE_JSON_VALUE_H_
#define TROUPE_STORAGE_CHAT_TEMPLATE_JSON_VALUE_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/chat_template/value.h"

namespace troupe::chat {

// Of two entries of one name the last counts, as in Python. InvalidArgument,
// with the byte, where it is no JSON or not UTF-8, for more than 100 levels,
// and for whole numbers of more than 64 bits.
absl::StatusOr<Value> ParseJson(absl::string_view text);

}  // namespace troupe::chat

#endif  // TROUPE_STORAGE_CHAT_TEMPLATE_JSON_VALUE_H_
