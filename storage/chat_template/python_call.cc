#include "storage/chat_template/python_call.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/base/status.h"
#include "storage/chat_template/python_text.h"

namespace troupe::chat {

absl::StatusOr<std::vector<Value>> Arguments::Bind(
    absl::Span<const absl::string_view> parameters, size_t needed) const {
  if (positional.size() > parameters.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(positional.size(), " arguments, where at most ",
                     parameters.size(), " are supported"));
  }
  std::vector<Value> values = positional;
  values.resize(parameters.size());
  std::vector<bool> given(parameters.size(), false);
  std::fill_n(given.begin(), positional.size(), true);
  for (const auto& [name, value] : named) {
    const auto found = std::find(parameters.begin(), parameters.end(), name);
    const auto at = static_cast<size_t>(found - parameters.begin());
    if (found == parameters.end()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the argument '", name,
          "' is not supported; there are: ", absl::StrJoin(parameters, ", ")));
    }
    if (given[at]) {
      return absl::InvalidArgumentError(
          absl::StrCat("the argument '", name, "' is given twice"));
    }
    given[at] = true;
    values[at] = value;
  }
  for (size_t i = 0; i < needed; ++i) {
    if (given[i]) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("the argument '", parameters[i], "' is missing"));
  }
  return values;
}

absl::StatusOr<Value> NewText(std::string text, Budget& budget) {
  RETURN_IF_ERROR(budget.SpendText(text.size()));
  return Value::Text(std::move(text));
}

absl::Status SpendKeys(const Dict& dict, Budget& budget) {
  RETURN_IF_ERROR(budget.Spend(dict.size()));
  for (const auto& [key, item] : dict.entries()) {
    RETURN_IF_ERROR(budget.SpendRead(key.size()));
  }
  return absl::OkStatus();
}

absl::StatusOr<List> ItemsOf(const Value& value, Budget& budget) {
  List items;
  if (value.has_items()) {
    RETURN_IF_ERROR(budget.Spend(value.items().size()));
    const bool is_read = value.Is(Value::Kind::kIterator) && value.ReadBefore();
    if (!is_read) items = value.items();
  } else if (value.is_dict()) {
    RETURN_IF_ERROR(SpendKeys(value.dict(), budget));
    for (const auto& [key, item] : value.dict().entries()) {
      items.push_back(Value::Text(key));
    }
  } else if (value.is_text()) {
    RETURN_IF_ERROR(budget.Spend(2 * value.text().size()));
    for (std::string& character : CharactersOf(value.text())) {
      items.push_back(Value::Text(std::move(character)));
    }
  } else if (value.is_defined()) {
    return absl::InvalidArgumentError(
        absl::StrCat(value.kind_words(), " has no items to go through"));
  }
  return items;
}

}  // namespace troupe::chat
