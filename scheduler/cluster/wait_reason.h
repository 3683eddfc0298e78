// Why a queued job does not start, in a sentence for its user:
//
//   waits for 4 workers; 3 are idle: worker-0, worker-1, worker-2; 1 is busy
//   with job 7
//   waits for 4 workers; only 2 are registered: worker-0, worker-1
//   waits for 2 workers; only 1 is in service: worker-0; 1 is set aside:
//   worker-1
#ifndef TROUPE_SCHEDULER_CLUSTER_WAIT_REASON_H_
#define TROUPE_SCHEDULER_CLUSTER_WAIT_REASON_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "scheduler/cluster/worker_table.h"

namespace troupe {

// For jobs that wait for the same workers: what there is to say of those is put
// together once. Borrows the table, which must not change meanwhile.
class WaitReasons {
 public:
  explicit WaitReasons(const WorkerTable& workers) : workers_(workers) {}

  // REQUIRES: fewer than `needed` workers are idle.
  std::string For(int needed);

 private:
  const WorkerTable& workers_;
  int of_one_kind_ = -1;    // workers, GPU or CPU, at most; -1: not counted
  std::string registered_;  // "5 are registered: ..."; empty: not asked yet
  std::string occupied_;    // "3 are idle: ...; 1 is busy with job 7"
};

// Why nothing starts while the store cannot be written.
std::string WaitsForStore(const absl::Status& store);

// Of many names only the first eight: "a, b and 3 more".
std::string NameList(std::vector<std::string> names);
// In natural order.
std::string NameList(const std::vector<const Worker*>& workers);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_CLUSTER_WAIT_REASON_H_
