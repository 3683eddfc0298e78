#include "worker/rank/windows.h"

#include <algorithm>

#include "proto/base/status.h"

namespace troupe {
namespace {

constexpr int64_t kElementsAtOnce = int64_t{1} << 20;

}  // namespace

absl::Status InWindows(
    int64_t elements,
    absl::FunctionRef<absl::Status(int64_t begin, int64_t count)> each) {
  for (int64_t begin = 0; begin < elements; begin += kElementsAtOnce) {
    RETURN_IF_ERROR(each(begin, std::min(kElementsAtOnce, elements - begin)));
  }
  return absl::OkStatus();
}

std::vector<char> WindowOf(int64_t elements) {
  return std::vector<char>(std::min(kElementsAtOnce, elements) * sizeof(float));
}

}  // namespace troupe
