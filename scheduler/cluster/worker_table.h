// The cluster's members: which are there, when each was last heard, what each
// does. A worker is IDLE, or BUSY with one rank of one job or with one text,
// until its lease ends or its connection breaks (LOST) or it says goodbye
// (LEFT). Workers that are gone stay listed for people to see, the newest few
// of them; they never come back, since a worker that reconnects gets a new id.
//
// A worker that is set aside (cordoned, failed on by several jobs, unfit by its
// own account) stays a member and keeps the rank that it has, but is given
// nothing new: it is not in service. Nor is one that was asked to leave. Of the
// workers against which nothing else is known, at most half are set aside
// because jobs failed on them: where others are gone, those with the fewest
// failures are in service again until others come (ReviewSetAside).
#ifndef TROUPE_SCHEDULER_CLUSTER_WORKER_TABLE_H_
#define TROUPE_SCHEDULER_CLUSTER_WORKER_TABLE_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/base/ids.h"
#include "proto/status.pb.h"
#include "proto/worker.pb.h"
#include "scheduler/cluster/limits.h"
#include "scheduler/cluster/worker_records.h"

namespace troupe {

struct Worker {
  WorkerId id;
  WorkerStatus status;  // what people see; kept up to date
  absl::Time heard;
  bool leaving = false;  // takes nothing new
  bool measures_links = false;  // it answers MeasureLinks
  bool checks_files = false;    // it answers CheckJobFiles
  std::string unfit;     // why it says itself that it can run no rank
  int doubt = 0;         // WorkerRecord::doubt
  // It is in service although jobs failed on it: too few others are there.
  bool indispensable = false;

  const std::string& name() const { return status.description().name(); }
  bool alive() const {
    return status.state() == WorkerStatus::IDLE ||
           status.state() == WorkerStatus::BUSY;
  }
  bool idle() const { return status.state() == WorkerStatus::IDLE && !leaving; }
  // Is given further work, now or later.
  bool in_service() const {
    return alive() && !leaving && status.set_aside().empty();
  }
  // Is given work now, if there is some.
  bool available() const { return idle() && in_service(); }
};

class WorkerTable {
 public:
  explicit WorkerTable(const Limits& limits) : limits_(limits) {}

  // What was remembered of workers. Before the first Add.
  void RestoreRecords(std::vector<WorkerRecord> records) {
    records_.Restore(std::move(records));
  }

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

  // A person takes the worker of this name out of service, or puts it back.
  // Where none has the name now, the status says the name only. NOT_FOUND: no
  // worker has it or had it, and nothing is remembered of it.
  absl::StatusOr<WorkerStatus> Cordon(const std::string& name,
                                      const std::string& why);
  absl::StatusOr<WorkerStatus> Uncordon(const std::string& name);
  // Its last rank failed for a cause of its own, as it seems: others come
  // first. Nothing happens where no worker has the name.
  void Doubt(const std::string& name);
  // Which of the workers on which jobs failed are needed. To be called when no
  // worker has come or gone for a while: the first to come back after a restart
  // may be the bad one.
  void ReviewSetAside();
  // The job failed there, and not elsewhere. True: that sets it aside.
  bool AddLocalFailure(const std::string& name, JobId job,
                       const std::string& why);
  // A rank of it has done well.
  void DidWell(const std::string& name);
  // What is to be stored.
  std::vector<WorkerRecord> TakeChangedRecords() {
    return records_.TakeChanged();
  }

  // By id, ascending. Pointers are valid until the next Add or Remove.
  std::vector<const Worker*> Idle() const;  // available ones
  std::vector<const Worker*> InService() const;
  std::vector<const Worker*> Alive() const;
  int idle_count() const { return idle_count_; }
  int in_service_count() const { return in_service_count_; }
  int alive_count() const { return static_cast<int>(alive_by_name_.size()); }

  // One that was to come back after a restart of the scheduler is gone for
  // good.
  void GiveUpAwaited() { ++changes_; }

  // Grows when a worker comes, goes or is to leave, becomes busy or idle, is
  // set aside or put back.
  int64_t changes() const { return changes_; }

  const std::map<WorkerId, Worker>& all() const { return workers_; }

  // Time in which nobody could be heard: leases do not count it.
  void Forgive(absl::Duration time, absl::Time now);

  // Live workers not heard for longer than the lease.
  std::vector<WorkerId> Expired(absl::Time now) const;

 private:
  // Takes it out of the counts, or adds it: before and after its status
  // changes.
  void Count(const Worker& worker, int sign);
  // What is remembered of the name, in its worker's status.
  void ShowRecord(Worker& worker);
  void ShowRecord(const std::string& name);  // of the live one
  void ShowRecordOfAll(const std::string& name);
  absl::Status CheckKnown(const std::string& name) const;
  WorkerStatus StatusOf(const std::string& name) const;
  // The new one takes the place of a gone one of its name.
  void ForgetNamesake(const std::string& name);
  void ForgetOld();
  void Forget(WorkerId gone);

  const Limits limits_;
  int64_t next_id_ = 1;
  int64_t changes_ = 0;
  int64_t reviewed_at_ = -1;  // changes_ then
  int idle_count_ = 0;
  int in_service_count_ = 0;
  std::map<WorkerId, Worker> workers_;
  WorkerRecords records_;
  absl::flat_hash_map<std::string, WorkerId> alive_by_name_;
  // Those that are gone: in the order in which they came, and by name, of which
  // there is one each.
  std::set<WorkerId> gone_;
  absl::flat_hash_map<std::string, WorkerId> gone_by_name_;
};

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_CLUSTER_WORKER_TABLE_H_
