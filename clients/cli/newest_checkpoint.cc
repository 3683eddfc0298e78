#include "clients/cli/newest_checkpoint.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "clients/cli/cluster_flags.h"
#include "proto/base/status.h"

namespace troupe {

absl::StatusOr<std::string> NewestCheckpointOf(Client& client,
                                               const std::string& job) {
  ASSIGN_OR_RETURN(const int64_t id, FindJob(client, job));
  ASSIGN_OR_RETURN(const JobDescription found, client.Describe(id));
  const auto& checkpoints = found.status().checkpoints();
  if (checkpoints.empty() && !found.status().resumed_from().empty()) {
    return found.status().resumed_from();
  }
  if (checkpoints.empty()) {
    return absl::NotFoundError(
        absl::StrCat("job ", id, " (", found.status().name(),
                     ") has no checkpoint yet; give its job file a "
                     "checkpoint.directory, or wait for the first"));
  }
  return std::max_element(
             checkpoints.begin(), checkpoints.end(),
             [](const auto& a, const auto& b) { return a.step() < b.step(); })
      ->path();
}

}  // namespace troupe
