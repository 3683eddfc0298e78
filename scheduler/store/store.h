// The scheduler's memory on disk: jobs, their steps and events, in
// DIR/troupe.db (SQLite, WAL). What is written is on the disk when Write
// returns. Messages are kept serialised, beside the columns that a person with
// a SQL prompt looks for:
//
//   jobs    id, name, state, reason, submitted_unix_ms, attempt, cancelled,
//           spec, status (checkpoints among it), plan (without programs)
//   steps   job, step, loss (as text), record
//   events  job, number, unix_ms, text
//   hand_outs  job, attempt, plan (with programs), rest: of a job that runs and
//           recovers from failures, what its ranks were handed (StoredHandOut);
//           plan and rest compressed (gzip)
//   workers  name, cordoned, why, set_aside, failures (job, reason; a line
//           each): what is remembered of workers (worker_records.h)
//   host_links  host, links (HostTopology): what was measured of the links
//           between hosts (link_measurements.h)
//   set_aside  unix_ms, why, and the columns of jobs, of damaged ones
//   builds  protocol, build, first_unix_ms: the builds that have written here
//   cluster  id: what tells this cluster from others, made with the store
//
// It keeps what the scheduler remembers (limits.h) and no more: jobs that are
// forgotten go, and of a long job's old steps one in a number stays. A job
// whose record is damaged does not stop the others: it is set aside, and a job
// of its number and name has FAILED in its place. Nor does a page of the file
// that cannot be read (salvage.h): what was on it is left out, and named.
//
// One thread at a time; StoreWriter owns the thread in the daemon.
#ifndef TROUPE_SCHEDULER_STORE_STORE_H_
#define TROUPE_SCHEDULER_STORE_STORE_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "scheduler/cluster/action.h"
#include "scheduler/cluster/job_table.h"
#include "scheduler/cluster/limits.h"
#include "scheduler/store/database.h"

namespace troupe {

// What is written at once: all of it or nothing.
struct StoreBatch {
  std::map<JobId, std::shared_ptr<const JobRow>> jobs;
  std::map<JobId, PersistHandOut> hand_outs;
  std::map<std::string, WorkerRecord> workers;
  std::map<std::string, HostTopology> hosts;
  std::vector<PersistStep> steps;
  std::vector<PersistEvent> events;
  // After the rows above.
  std::vector<ThinSteps> thinned;
  std::vector<JobId> forgotten;
  bool empty() const {
    return jobs.empty() && hand_outs.empty() && workers.empty() &&
           hosts.empty() && steps.empty() && events.empty() &&
           thinned.empty() && forgotten.empty();
  }
};

struct LoadedJobs {
  std::vector<StoredJob> jobs;          // by id
  std::vector<WorkerRecord> workers;    // by name
  std::vector<HostTopology> hosts;      // by name
  std::vector<std::string> complaints;  // what was damaged, a line each
};

class Store {
 public:
  // FAILED_PRECONDITION: a newer build wrote the file, which this one would
  // misread; it says which. What an older one wrote is read. PERMISSION_DENIED,
  // RESOURCE_EXHAUSTED, DATA_LOSS: as they say, with the file's name.
  static absl::StatusOr<std::unique_ptr<Store>> Open(
      const std::string& directory);

  // Of the state directory, for its life (cluster_id.h).
  const std::string& cluster_id() const { return cluster_id_; }

  // All jobs that have not ended and the newest that have, as many as the
  // limits keep in memory, with the newest of their steps. The others are
  // forgotten.
  absl::StatusOr<LoadedJobs> Load(const Limits& limits);

  absl::Status Write(const StoreBatch& batch);

  // Of the tables. What is in their messages goes by the protocol's version.
  static constexpr int kSchemaVersion = 2;
  static constexpr int kSetAsideMax = 100;  // the newest

 private:
  Store(std::string path, Database database)
      : path_(std::move(path)), database_(std::move(database)) {}
  absl::Status CreateTables();
  // Refuses what a newer build wrote, and leaves this build's name.
  absl::Status SignAsWriter();
  // DATA_LOSS where a page of the file cannot be read.
  absl::StatusOr<LoadedJobs> LoadAll(const Limits& limits);
  absl::Status WriteRows(const StoreBatch& batch);
  // Without it the job runs on, but cannot go on from copies.
  absl::Status LoadHandOut(StoredJob& job, LoadedJobs& loaded);
  absl::Status MakeRoom(const StoreBatch& batch);
  absl::Status DropSequences(const ThinSteps& thinned);
  // In one transaction, or not at all.
  template <typename Body>
  absl::Status Atomically(const Body& body);
  // The newest, `steps_max` at most; takes what they weigh (step_weight.h) from
  // `room`.
  absl::Status LoadSteps(StoredJob& job, int64_t steps_max, int64_t& room,
                         LoadedJobs& loaded);
  absl::Status LoadEvents(StoredJob& job);
  // Keeps the row for somebody to look at, and puts `job` in its place.
  absl::Status SetAside(const StoredJob& job);

  const std::string path_;
  Database database_;
  std::string cluster_id_;
};

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_STORE_STORE_H_
