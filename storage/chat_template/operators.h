// Operators of expressions, as Python's: + - * / // % ~, comparisons, slices.
#ifndef TROUPE_STORAGE_CHAT_TEMPLATE_OPERATORS_H_
#define TROUPE_STORAGE_CHAT_TEMPLATE_OPERATORS_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/chat_template/python_call.h"
#include "storage/chat_template/value.h"

namespace troupe::chat {

// Each: InvalidArgument where Python has no such thing for the values, where a
// number leaves 64 bits, or where it is not supported.
absl::StatusOr<Value> SignedOf(absl::string_view sign, const Value& value);
absl::StatusOr<Value> Combine(absl::string_view sign, const Value& left,
                              const Value& right, Budget& budget);
// == != < <= > >= in, not in.
absl::StatusOr<bool> HoldsBetween(absl::string_view sign, const Value& left,
                                  const Value& right, Budget& budget);

struct SliceBounds {
  std::optional<int64_t> begin;
  std::optional<int64_t> end;
  std::optional<int64_t> step;
};
absl::StatusOr<Value> Slice(const Value& value, const SliceBounds& bounds,
                            Budget& budget);

}  // namespace troupe::chat

#endif  // TROUPE_STORAGE_CHAT_TEMPLATE_OPERATORS_H_
