// Filters (`value | name(arguments)`) and tests (`value is name(arguments)`) of
// Jinja2, as far as chat templates use them; each is a row of a table.
#ifndef TROUPE_STORAGE_CHAT_TEMPLATE_FILTERS_H_
#define TROUPE_STORAGE_CHAT_TEMPLATE_FILTERS_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/chat_template/python_call.h"
#include "storage/chat_template/value.h"

namespace troupe::chat {

// InvalidArgument, with the names that there are, for another name, and for
// arguments that are not supported or do not fit.
absl::StatusOr<Value> RunFilter(absl::string_view name, const Value& value,
                                const Arguments& arguments, Budget& budget);
absl::StatusOr<bool> RunTest(absl::string_view name, const Value& value,
                             const Arguments& arguments, Budget& budget);

// value[key]; undefined where there is none. Errors of AttributeOf (methods.h).
absl::StatusOr<Value> ItemOf(const Value& value, const Value& key,
                             Budget& budget);

// Python's `item in value`, and a < b.
absl::StatusOr<bool> Contains(const Value& value, const Value& item,
                              Budget& budget);
absl::StatusOr<bool> HoldsItem(const List& items, const Value& item,
                               Budget& budget);
absl::StatusOr<bool> IsLess(const Value& a, const Value& b, Budget& budget);

}  // namespace troupe::chat

#endif  // TROUPE_STORAGE_CHAT_TEMPLATE_FILTERS_H_
