// The tables of workers and their hosts: what is remembered of each by its name
// (scheduler/cluster/worker_records.h).
#ifndef TROUPE_SCHEDULER_STORE_WORKER_ROWS_H_
#define TROUPE_SCHEDULER_STORE_WORKER_ROWS_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/cluster.pb.h"
#include "scheduler/cluster/worker_records.h"
#include "scheduler/store/database.h"

namespace troupe {

// By name. Failures that cannot be read are left out.
absl::StatusOr<std::vector<WorkerRecord>> ReadWorkers(Database& database);

// An empty record removes its row. Within the caller's transaction.
absl::Status WriteWorkers(Database& database,
                          const std::map<std::string, WorkerRecord>& workers);

// What was measured of the links of hosts
// (scheduler/cluster/link_measurements.h). Rows that cannot be read are left
// out.
absl::StatusOr<std::vector<HostTopology>> ReadHosts(Database& database);
// By name. Within the caller's transaction.
absl::Status WriteHosts(Database& database,
                        const std::map<std::string, HostTopology>& hosts);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_STORE_WORKER_ROWS_H_
