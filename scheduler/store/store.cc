#include "scheduler/store/store.h"

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "proto/base/one_line.h"
#include "proto/base/status.h"
#include "proto/protocol_version.h"
#include "scheduler/cluster/step_weight.h"
#include "scheduler/store/cluster_id.h"
#include "scheduler/store/hand_outs.h"
#include "scheduler/store/salvage.h"
#include "scheduler/store/worker_rows.h"

namespace troupe {
namespace {

constexpr size_t kBuildBytesMax = 100;

constexpr char kTables[] = R"sql(
CREATE TABLE IF NOT EXISTS jobs (
  id INTEGER PRIMARY KEY, name TEXT, state TEXT, reason TEXT,
  submitted_unix_ms INTEGER, attempt INTEGER, cancelled INTEGER,
  spec BLOB, status BLOB, plan BLOB);
CREATE TABLE IF NOT EXISTS steps (
  job INTEGER, step INTEGER, loss TEXT, record BLOB,
  PRIMARY KEY (job, step)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS events (
  job INTEGER, number INTEGER, unix_ms INTEGER, text TEXT,
  PRIMARY KEY (job, number)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS hand_outs (
  job INTEGER PRIMARY KEY, attempt INTEGER, plan BLOB, rest BLOB);
CREATE TABLE IF NOT EXISTS builds (
  protocol INTEGER PRIMARY KEY, build TEXT, first_unix_ms INTEGER);
CREATE TABLE IF NOT EXISTS cluster (
  number INTEGER PRIMARY KEY CHECK (number = 1), id TEXT);
CREATE TABLE IF NOT EXISTS workers (
  name TEXT PRIMARY KEY, cordoned INTEGER, why TEXT, set_aside INTEGER,
  failures TEXT);
CREATE TABLE IF NOT EXISTS host_links (
  host TEXT PRIMARY KEY, links BLOB);
CREATE TABLE IF NOT EXISTS set_aside (
  unix_ms INTEGER, why TEXT,
  id INTEGER, name TEXT, state TEXT, reason TEXT,
  submitted_unix_ms INTEGER, attempt INTEGER, cancelled INTEGER,
  spec BLOB, status BLOB, plan BLOB);
)sql";

// What is wrong with a job's record; empty: nothing. `id` is its row's.
std::string Damage(int64_t id, const Statement& row, StoredJob& job) {
  job.row.attempt = static_cast<int32_t>(row.Int(1));
  job.row.cancelled = row.Int(2) != 0;
  if (!job.row.spec.ParseFromString(row.Bytes(3))) return "its spec";
  if (!job.row.status.ParseFromString(row.Bytes(4)) ||
      job.row.status.id() != id || !JobState_IsValid(job.row.status.state()) ||
      job.row.status.state() == JOB_STATE_UNSPECIFIED) {
    return "its status";
  }
  const std::string plan = row.Bytes(5);
  if (plan.empty()) return "";
  auto parsed = std::make_shared<Plan>();
  if (!parsed->ParseFromString(plan)) return "its plan";
  job.row.plan = std::move(parsed);
  return "";
}

// What is there in place of a job whose record is damaged.
StoredJob Remains(int64_t id, const std::string& damage, const Statement& row) {
  StoredJob job;
  JobStatus& status = job.row.status;
  status.set_id(id);
  status.set_name(absl::CHexEscape(row.Bytes(6).substr(0, 100)));
  status.set_submitted_unix_ms(row.Int(7));
  status.set_finished_unix_ms(absl::ToUnixMillis(absl::Now()));
  status.set_state(FAILED);
  status.set_reason(absl::StrCat(
      "the scheduler's record of it is damaged: ", damage, " cannot be read; ",
      "what is left of it is in the table set_aside of troupe.db"));
  job.row.spec.set_name(status.name());
  return job;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Store>> Store::Open(
    const std::string& directory) {
  const std::string path = absl::StrCat(directory, "/troupe.db");
  ASSIGN_OR_RETURN(Database database, Database::Open(path));
  auto store = std::unique_ptr<Store>(new Store(path, std::move(database)));
  RETURN_IF_ERROR(store->CreateTables());
  ASSIGN_OR_RETURN(store->cluster_id_,
                   EnsureClusterId(directory, store->database_));
  return store;
}

absl::Status Store::CreateTables() {
  int64_t version = 0;
  {
    ASSIGN_OR_RETURN(Statement query, database_.Prepare("PRAGMA user_version"));
    RETURN_IF_ERROR(query.Next().status());
    version = query.Int(0);
  }
  if (version > kSchemaVersion) {
    return absl::FailedPreconditionError(absl::StrCat(
        path_, " was written by a newer scheduler (schema version ", version,
        "; ", kBuildName, " reads up to ", kSchemaVersion,
        "); start that build, or this one with another --state directory"));
  }
  RETURN_IF_ERROR(database_.Execute(kTables));
  RETURN_IF_ERROR(SignAsWriter());
  return database_.Execute(
      absl::StrCat("PRAGMA user_version = ", kSchemaVersion));
}

absl::Status Store::SignAsWriter() {
  {
    ASSIGN_OR_RETURN(
        Statement query,
        database_.Prepare("SELECT protocol, build FROM builds ORDER BY "
                          "protocol DESC LIMIT 1"));
    ASSIGN_OR_RETURN(const bool any, query.Next());
    if (any && query.Int(0) > kProtocolVersion) {
      return absl::FailedPreconditionError(absl::StrCat(
          path_, " was written by a newer scheduler (",
          OneLine(query.Bytes(1), kBuildBytesMax), ", protocol ", query.Int(0),
          "; this one is ", kBuildName, ", protocol ", kProtocolVersion,
          "); start that build, or this one with another --state directory"));
    }
  }
  ASSIGN_OR_RETURN(
      Statement sign,
      database_.Prepare(
          "INSERT OR IGNORE INTO builds VALUES (?, CAST(? AS TEXT), ?)"));
  sign.Bind(1, int64_t{kProtocolVersion});
  sign.Bind(2, absl::string_view(kBuildName));
  sign.Bind(3, absl::ToUnixMillis(absl::Now()));
  return sign.Run();
}

absl::StatusOr<LoadedJobs> Store::Load(const Limits& limits) {
  absl::StatusOr<LoadedJobs> loaded = LoadAll(limits);
  if (!absl::IsDataLoss(loaded.status())) return loaded;
  ASSIGN_OR_RETURN(Database reader, Database::Open(path_));
  std::vector<std::string> lost;
  RETURN_IF_ERROR(Atomically([&]() -> absl::Status {
    ASSIGN_OR_RETURN(lost, Salvage({reader, database_}, kTables));
    return absl::OkStatus();
  }));
  ASSIGN_OR_RETURN(loaded, LoadAll(limits));
  loaded->complaints.insert(loaded->complaints.begin(), lost.begin(),
                            lost.end());
  return loaded;
}

absl::StatusOr<LoadedJobs> Store::LoadAll(const Limits& limits) {
  LoadedJobs loaded;
  std::vector<StoredJob> damaged;
  StoreBatch old;
  ASSIGN_OR_RETURN(
      Statement query,
      database_.Prepare("SELECT id, attempt, cancelled, spec, status, plan, "
                        "name, submitted_unix_ms FROM jobs ORDER BY id DESC"));
  int ended = 0;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, query.Next());
    if (!more) break;
    StoredJob job;
    const int64_t id = query.Int(0);
    const std::string damage = Damage(id, query, job);
    if (!damage.empty()) {
      job = Remains(id, damage, query);
      damaged.push_back(job);
      loaded.complaints.push_back(absl::StrCat("job ", id, " (",
                                               job.row.status.name(),
                                               "): ", job.row.status.reason()));
    }
    if (Job::IsEnded(job.row.status.state()) &&
        ++ended > limits.ended_jobs_kept) {
      old.forgotten.push_back(JobId(id));
      continue;
    }
    loaded.jobs.push_back(std::move(job));
  }
  for (const StoredJob& job : damaged) RETURN_IF_ERROR(SetAside(job));
  RETURN_IF_ERROR(Write(old));
  int64_t room = limits.steps_kept_max;  // the newest jobs' steps come first
  for (StoredJob& job : loaded.jobs) {
    RETURN_IF_ERROR(LoadSteps(job, limits.steps_loaded_max(), room, loaded));
    RETURN_IF_ERROR(LoadEvents(job));
    RETURN_IF_ERROR(LoadHandOut(job, loaded));
  }
  std::reverse(loaded.jobs.begin(), loaded.jobs.end());
  ASSIGN_OR_RETURN(loaded.workers, ReadWorkers(database_));
  ASSIGN_OR_RETURN(loaded.hosts, ReadHosts(database_));
  return loaded;
}

absl::Status Store::SetAside(const StoredJob& job) {
  return Atomically([&]() -> absl::Status {
    ASSIGN_OR_RETURN(
        Statement copy,
        database_.Prepare(
            "INSERT INTO set_aside SELECT ?, CAST(? AS TEXT), id, name, state, "
            "reason, submitted_unix_ms, attempt, cancelled, spec, status, plan "
            "FROM jobs WHERE id = ?"));
    copy.Bind(1, job.row.status.finished_unix_ms());
    copy.Bind(2, job.row.status.reason());
    copy.Bind(3, job.row.status.id());
    RETURN_IF_ERROR(copy.Run());
    RETURN_IF_ERROR(database_.Execute(absl::StrCat(
        "DELETE FROM set_aside WHERE rowid NOT IN (SELECT rowid FROM set_aside "
        "ORDER BY rowid DESC LIMIT ",
        kSetAsideMax, ")")));
    StoreBatch batch;
    batch.jobs[JobId(job.row.status.id())] =
        std::make_shared<const JobRow>(job.row);
    return WriteRows(batch);
  });
}

absl::Status Store::LoadSteps(StoredJob& job, int64_t steps_max, int64_t& room,
                              LoadedJobs& loaded) {
  const int64_t id = job.row.status.id();
  ASSIGN_OR_RETURN(
      Statement steps,
      database_.Prepare("SELECT step, record FROM steps WHERE job = ? "
                        "ORDER BY step DESC LIMIT ?"));
  steps.Bind(1, id);
  steps.Bind(2, std::min(room, steps_max));
  int damaged = 0;
  while (room > 0) {
    ASSIGN_OR_RETURN(const bool more, steps.Next());
    if (!more) break;
    StepRecord step;
    if (!step.ParseFromString(steps.Bytes(1)) || step.step() != steps.Int(0)) {
      ++damaged;
      continue;
    }
    // The one that does not fit is the last: those behind it are older.
    room -= StepWeight(step);
    if (room >= 0) job.steps.push_back(std::move(step));
  }
  if (damaged > 0) {
    loaded.complaints.push_back(
        absl::StrCat("job ", id, " (", job.row.status.name(), "): the records ",
                     "of ", damaged, " steps are damaged and left out"));
  }
  std::reverse(job.steps.begin(), job.steps.end());
  return absl::OkStatus();
}

absl::Status Store::LoadEvents(StoredJob& job) {
  ASSIGN_OR_RETURN(Statement events,
                   database_.Prepare("SELECT unix_ms, text FROM events "
                                     "WHERE job = ? ORDER BY number"));
  events.Bind(1, job.row.status.id());
  while (true) {
    ASSIGN_OR_RETURN(const bool more, events.Next());
    if (!more) break;
    JobEvent& event = job.events.emplace_back();
    event.set_unix_ms(events.Int(0));
    event.set_text(events.Bytes(1));
  }
  return absl::OkStatus();
}

absl::Status Store::LoadHandOut(StoredJob& job, LoadedJobs& loaded) {
  const JobStatus& status = job.row.status;
  if (status.state() == QUEUED || Job::IsEnded(status.state())) {
    return absl::OkStatus();
  }
  auto handed = ReadHandOut(database_, JobId(status.id()), job.row.attempt);
  if (absl::IsInvalidArgument(handed.status())) {
    loaded.complaints.push_back(absl::StrCat("job ", status.id(), " (",
                                             status.name(),
                                             "): ", handed.status().message()));
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(handed.status());
  job.hand_out = *std::move(handed);
  return absl::OkStatus();
}

template <typename Body>
absl::Status Store::Atomically(const Body& body) {
  RETURN_IF_ERROR(database_.Execute("BEGIN IMMEDIATE"));
  absl::Status done = body();
  if (done.ok()) done = database_.Execute("COMMIT");
  // After some errors SQLite has rolled back by itself; then this is refused.
  if (!done.ok()) database_.Execute("ROLLBACK").IgnoreError();
  return done;
}

absl::Status Store::Write(const StoreBatch& batch) {
  if (batch.empty()) return absl::OkStatus();
  return Atomically([&] { return WriteRows(batch); });
}

absl::Status Store::WriteRows(const StoreBatch& batch) {
  ASSIGN_OR_RETURN(Statement job,
                   database_.Prepare("INSERT OR REPLACE INTO jobs VALUES "
                                     "(?, CAST(? AS TEXT), CAST(? AS TEXT), "
                                     "CAST(? AS TEXT), ?, ?, ?, ?, ?, "
                                     "?)"));
  for (const auto& [id, row] : batch.jobs) {
    job.Bind(1, id.value());
    job.Bind(2, row->status.name());
    job.Bind(3, JobState_Name(row->status.state()));
    job.Bind(4, row->status.reason());
    job.Bind(5, row->status.submitted_unix_ms());
    job.Bind(6, int64_t{row->attempt});
    job.Bind(7, int64_t{row->cancelled});
    job.Bind(8, row->spec.SerializeAsString());
    job.Bind(9, row->status.SerializeAsString());
    job.Bind(10, row->plan ? row->plan->SerializeAsString() : std::string());
    RETURN_IF_ERROR(job.Run());
  }
  RETURN_IF_ERROR(WriteHandOuts(database_, batch.hand_outs, batch.jobs));
  RETURN_IF_ERROR(WriteWorkers(database_, batch.workers));
  RETURN_IF_ERROR(WriteHosts(database_, batch.hosts));
  ASSIGN_OR_RETURN(
      Statement step,
      database_.Prepare(
          "INSERT OR REPLACE INTO steps VALUES (?, ?, CAST(? AS TEXT), ?)"));
  for (const PersistStep& record : batch.steps) {
    step.Bind(1, record.job.value());
    step.Bind(2, record.step.step());
    step.Bind(3, absl::StrCat(record.step.loss()));
    step.Bind(4, record.step.SerializeAsString());
    RETURN_IF_ERROR(step.Run());
  }
  ASSIGN_OR_RETURN(
      Statement event,
      database_.Prepare(
          "INSERT OR REPLACE INTO events VALUES (?, ?, ?, CAST(? AS TEXT))"));
  for (const PersistEvent& record : batch.events) {
    event.Bind(1, record.job.value());
    event.Bind(2, record.index);
    event.Bind(3, record.event.unix_ms());
    event.Bind(4, record.event.text());
    RETURN_IF_ERROR(event.Run());
  }
  return MakeRoom(batch);
}

absl::Status Store::DropSequences(const ThinSteps& thinned) {
  ASSIGN_OR_RETURN(Statement steps,
                   database_.Prepare("SELECT step, record FROM steps WHERE "
                                     "job = ? AND step < ?"));
  steps.Bind(1, thinned.job.value());
  steps.Bind(2, thinned.before);
  std::vector<StepRecord> smaller;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, steps.Next());
    if (!more) break;
    StepRecord step;
    if (!step.ParseFromString(steps.Bytes(1)) || step.step() != steps.Int(0) ||
        !step.has_sequence_losses()) {
      continue;
    }
    step.clear_sequence_losses();
    smaller.push_back(std::move(step));
  }
  ASSIGN_OR_RETURN(Statement replace,
                   database_.Prepare("UPDATE steps SET record = ? WHERE "
                                     "job = ? AND step = ?"));
  for (const StepRecord& step : smaller) {
    replace.Bind(1, step.SerializeAsString());
    replace.Bind(2, thinned.job.value());
    replace.Bind(3, step.step());
    RETURN_IF_ERROR(replace.Run());
  }
  return absl::OkStatus();
}

absl::Status Store::MakeRoom(const StoreBatch& batch) {
  ASSIGN_OR_RETURN(Statement thin,
                   database_.Prepare("DELETE FROM steps WHERE job = ? AND "
                                     "step < ? AND step % ? != 0"));
  for (const ThinSteps& steps : batch.thinned) {
    thin.Bind(1, steps.job.value());
    thin.Bind(2, steps.before);
    thin.Bind(3, steps.every);
    RETURN_IF_ERROR(thin.Run());
    if (steps.without_sequences) RETURN_IF_ERROR(DropSequences(steps));
  }
  for (const char* rows : {"jobs WHERE id", "steps WHERE job",
                           "events WHERE job", "hand_outs WHERE job"}) {
    ASSIGN_OR_RETURN(Statement forget, database_.Prepare(absl::StrCat(
                                           "DELETE FROM ", rows, " = ?")));
    for (const JobId job : batch.forgotten) {
      forget.Bind(1, job.value());
      RETURN_IF_ERROR(forget.Run());
    }
  }
  return absl::OkStatus();
}

}  // namespace troupe
