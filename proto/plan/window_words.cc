#include "proto/plan/window_words.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace troupe {
namespace {

constexpr absl::string_view kBeforeWindow = "the first is window ";
constexpr absl::string_view kBehindWindow = ", counted from 0";

}  // namespace

std::string FirstWindowWords(int64_t window) {
  return absl::StrCat(kBeforeWindow, window, kBehindWindow);
}

absl::optional<int64_t> FirstWindowIn(absl::string_view message) {
  const size_t before = message.find(kBeforeWindow);
  if (before == absl::string_view::npos) return absl::nullopt;
  message.remove_prefix(before + kBeforeWindow.size());
  const size_t behind = message.find(kBehindWindow);
  int64_t window = 0;
  if (behind == absl::string_view::npos ||
      !absl::SimpleAtoi(message.substr(0, behind), &window) || window < 0) {
    return absl::nullopt;
  }
  return window;
}

}  // namespace troupe
