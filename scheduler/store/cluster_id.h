// The cluster's id, for its life: a worker that holds a rank is taken back only
// by a scheduler with the id of the one that gave it. It is lost to nobody with
// a damaged troupe.db, so it is in the state directory twice: in the file
// cluster_id, which counts, and in the store's table, for backups of the store
// alone and where the file is missing.
#ifndef TROUPE_SCHEDULER_STORE_CLUSTER_ID_H_
#define TROUPE_SCHEDULER_STORE_CLUSTER_ID_H_

#include <string>

#include "absl/status/statusor.h"
#include "scheduler/store/database.h"

namespace troupe {

// 16 hexadecimal digits: what one of them says, else a new one. From here on
// both say it, but for a table that is damaged, which is logged. REQUIRES: the
// table `cluster` is there.
absl::StatusOr<std::string> EnsureClusterId(const std::string& directory,
                                            Database& database);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_STORE_CLUSTER_ID_H_
