// What filters, tests, methods and functions of a template get.
#ifndef TROUPE_STORAGE_CHAT_TEMPLATE_PYTHON_CALL_H_
#define TROUPE_STORAGE_CHAT_TEMPLATE_PYTHON_CALL_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "storage/chat_template/budget.h"
#include "storage/chat_template/value.h"

namespace troupe::chat {

// Arguments of a call, after those of Python: by position, then by name.
class Arguments {
 public:
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;

  // Gives each parameter its argument, undefined where there is none.
  // InvalidArgument for more, for others, and for one that is given twice. The
  // first `needed` ones must be there.
  absl::StatusOr<std::vector<Value>> Bind(
      absl::Span<const absl::string_view> parameters, size_t needed = 0) const;
};

// A text of Python's str(value), charged to the budget.
absl::StatusOr<Value> NewText(std::string text, Budget& budget);
// Of a dict whose keys are copied.
absl::Status SpendKeys(const Dict& dict, Budget& budget);
// What a loop over the value goes through. InvalidArgument where there is no
// such thing.
absl::StatusOr<List> ItemsOf(const Value& value, Budget& budget);

}  // namespace troupe::chat

#endif  // TROUPE_STORAGE_CHAT_TEMPLATE_PYTHON_CALL_H_
