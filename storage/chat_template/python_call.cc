#include "storage/chat_template/python_call.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/base/status.h"
#include "storage/chat_template/python_text.h"

namespace troupe::chat {
namespace {

constexpr size_t kBytesPerStep = 64;

}  // namespace

absl::Status Budget::Spend(int64_t steps) {
  steps_ -= steps;
  if (steps_ >= 0) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      "the template takes too many steps for this conversation");
}

absl::Status Budget::SpendText(size_t bytes) {
  if (bytes > text_bytes_max_) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the template makes a text of more than ",
                     text_bytes_max_ >> 20, " MiB"));
  }
  return Spend(static_cast<int64_t>(bytes / kBytesPerStep));
}

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

absl::StatusOr<List> ItemsOf(const Value& value, Budget& budget) {
  List items;
  if (value.Is(Value::Kind::kIterator)) {
    if (!value.ReadBefore()) items = value.items();
  } else if (value.has_items()) {
    items = value.items();
  } else if (value.is_dict()) {
    for (const auto& [key, item] : value.dict().entries()) {
      items.push_back(Value::Text(key));
    }
  } else if (value.is_text()) {
    RETURN_IF_ERROR(budget.Spend(static_cast<int64_t>(value.text().size())));
    for (std::string& character : CharactersOf(value.text())) {
      items.push_back(Value::Text(std::move(character)));
    }
  } else if (value.is_defined()) {
    return absl::InvalidArgumentError(
        absl::StrCat(value.kind_words(), " has no items to go through"));
  }
  RETURN_IF_ERROR(budget.Spend(static_cast<int64_t>(items.size())));
  return items;
}

}  // namespace troupe::chat
