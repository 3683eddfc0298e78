// Attributes and methods of values, as Python's types have them.
#ifndef TROUPE_STORAGE_CHAT_TEMPLATE_METHODS_H_
#define TROUPE_STORAGE_CHAT_TEMPLATE_METHODS_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/chat_template/python_call.h"
#include "storage/chat_template/value.h"

namespace troupe::chat {

// value.name, without a call; undefined where there is none. InvalidArgument
// for an attribute of what is undefined, and for a method, which comes before
// an item of the same name.
absl::StatusOr<Value> AttributeOf(const Value& value, absl::string_view name);

// value.name(arguments). InvalidArgument, with the methods that there are.
absl::StatusOr<Value> CallMethod(const Value& value, absl::string_view name,
                                 const Arguments& arguments, Budget& budget);

// As tuples of two; the caller spends for them (SpendKeys).
List PairsOf(const Dict& dict);

// Of Strip (python_text.h), which compares each character with each of those
// that are taken away.
absl::Status SpendStrip(absl::string_view text,
                        const std::optional<std::string>& characters,
                        Budget& budget);

}  // namespace troupe::chat

#endif  // TROUPE_STORAGE_CHAT_TEMPLATE_METHODS_H_
