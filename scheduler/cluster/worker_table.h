// The cluster's members: who is there, when each was last heard, what each
// does. A worker is IDLE, or BUSY with one rank of one job or with one text,
// until its lease ends or its connection breaks (LOST) or it says goodbye
// (LEFT). Workers that are gone stay listed for people to see, the newest few
// of them; they never come back, since a worker that reconnects gets a new id.
#ifndef TROUPE_SCHEDULER_CLUSTER_WORKER_TABLE_H_
#define TROUPE_SCHEDULER_CLUSTER_WORKER_TABLE_H_

#include <map>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/base/ids.h"
#include "proto/status.pb.h"
#include "proto/worker.pb.h"
#include "scheduler/cluster/limits.h"

namespace troupe {

struct Worker {
  WorkerId id;
  WorkerStatus status;  // what people see; kept up to date
  absl::Time heard;
  bool leaving = false;  // takes nothing new

  const std::string& name() const { return status.description().name(); }
  bool alive() const {
    return status.state() == WorkerStatus::IDLE ||
           status.state() == WorkerStatus::BUSY;
  }
  bool idle() const { return status.state() == WorkerStatus::IDLE && !leaving; }
};

class WorkerTable {
 public:
  explicit WorkerTable(const Limits& limits) : limits_(limits) {}

  // ALREADY_EXISTS: a live worker has the name. FAILED_PRECONDITION: another
  // protocol version. INVALID_ARGUMENT: no name, or texts that no worker has.
  // RESOURCE_EXHAUSTED.
  absl::StatusOr<WorkerId> Add(const Register& request, absl::Time now);

  // Null: no such worker.
  Worker* Find(WorkerId id);
  const Worker* Find(WorkerId id) const;

  // REQUIRES: idle. Then BUSY with that, as its status says, until Release.
  void Seat(WorkerId id, JobId job, int32_t rank);
  void SeatText(WorkerId id, int64_t text);
  // REQUIRES: BUSY.
  void Release(WorkerId id);

  // From now on it is given nothing new. REQUIRES: alive.
  void Leave(WorkerId id);

  // LOST or LEFT. REQUIRES: alive.
  void Remove(WorkerId id, WorkerStatus::State state, std::string reason);

  // By id, ascending. Pointers are valid until the next Add or Remove.
  std::vector<const Worker*> Idle() const;
  std::vector<const Worker*> Alive() const;
  int idle_count() const { return idle_count_; }
  int alive_count() const { return static_cast<int>(alive_by_name_.size()); }

  // One that was to come back after a restart of the scheduler is gone for
  // good.
  void GiveUpAwaited() { ++changes_; }

  // Grows when a worker comes, goes, becomes busy or idle.
  int64_t changes() const { return changes_; }

  const std::map<WorkerId, Worker>& all() const { return workers_; }

  // Time in which nobody could be heard: leases do not count it.
  void Forgive(absl::Duration time, absl::Time now);

  // Live workers not heard for longer than the lease.
  std::vector<WorkerId> Expired(absl::Time now) const;

 private:
  // The new one takes the place of a gone one of its name.
  void ForgetNamesake(const std::string& name);
  void ForgetOld();

  const Limits limits_;
  int64_t next_id_ = 1;
  int64_t changes_ = 0;
  int idle_count_ = 0;
  std::map<WorkerId, Worker> workers_;
  absl::flat_hash_map<std::string, WorkerId> alive_by_name_;
};

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_CLUSTER_WORKER_TABLE_H_
