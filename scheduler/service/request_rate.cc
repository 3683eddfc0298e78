#include "scheduler/service/request_rate.h"

#include <algorithm>

namespace troupe {

absl::optional<absl::Duration> RequestRate::Take(const std::string& client,
                                                 int64_t now_ns) {
  const auto each_ns = static_cast<int64_t>(1e9 / options_.per_second);
  if (next_ns_.size() >= options_.clients_max) Forget(now_ns);
  const bool is_known = next_ns_.contains(client);
  const bool has_room = is_known || next_ns_.size() < options_.clients_max;
  int64_t& next_ns = next_ns_[has_room ? client : std::string()];
  const int64_t from_ns = std::max(next_ns, now_ns);
  const int64_t wait_ns =
      std::max<int64_t>(0, from_ns - now_ns - (options_.burst - 1) * each_ns);
  const absl::Duration wait = absl::Nanoseconds(wait_ns);
  if (wait > options_.wait_max) return absl::nullopt;
  next_ns = from_ns + each_ns;
  return wait;
}

void RequestRate::Forget(int64_t now_ns) {
  absl::erase_if(
      next_ns_, [now_ns](const auto& entry) { return entry.second <= now_ns; });
}

}  // namespace troupe
