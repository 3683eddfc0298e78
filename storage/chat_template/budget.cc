#include "storage/chat_template/budget.h"

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"

namespace troupe::chat {
namespace {

constexpr size_t kBytesPerStep = 64;

}  // namespace

absl::Status Budget::Spend(size_t steps) {
  if (steps <= static_cast<size_t>(steps_)) {
    steps_ -= static_cast<int64_t>(steps);
    return absl::OkStatus();
  }
  steps_ = 0;
  return absl::ResourceExhaustedError(
      "the template takes too many steps for this conversation");
}

absl::Status Budget::SpendRead(size_t bytes) {
  return Spend(bytes / kBytesPerStep);
}

absl::Status Budget::SpendSearch(size_t bytes, size_t sought_bytes) {
  return Spend(bytes / kBytesPerStep * (sought_bytes / kBytesPerStep + 1));
}

absl::Status Budget::SpendText(size_t bytes) {
  RETURN_IF_ERROR(CheckText(bytes));
  return SpendRead(bytes);
}

absl::Status Budget::CheckText(size_t bytes) const {
  if (bytes <= text_bytes_max_) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("the template makes a text of more than ",
                   text_bytes_max_ >> 20, " MiB"));
}

}  // namespace troupe::chat
