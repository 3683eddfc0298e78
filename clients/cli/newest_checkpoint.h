// The checkpoint that is meant where a command names a job.
#ifndef TROUPE_CLIENTS_CLI_NEWEST_CHECKPOINT_H_
#define TROUPE_CLIENTS_CLI_NEWEST_CHECKPOINT_H_

#include <string>

#include "absl/status/statusor.h"
#include "clients/cpp/client.h"

namespace troupe {

// The path of the newest one. `job`: its number, its name, or latest. NotFound
// where there is no such job, and where it has none yet.
absl::StatusOr<std::string> NewestCheckpointOf(Client& client,
                                               const std::string& job);

}  // namespace troupe

#endif  // TROUPE_CLIENTS_CLI_NEWEST_CHECKPOINT_H_
