#include "scheduler/store/store.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"

namespace troupe {
namespace {

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
)sql";

absl::Status Damaged(const char* what, int64_t job) {
  return absl::DataLossError(absl::StrCat(
      "the store's ", what, " of job ", job, " cannot be read; move troupe.db ",
      "away to start with an empty history"));
}

absl::StatusOr<StoredJob> ReadJob(const Statement& row) {
  StoredJob job;
  const int64_t id = row.Int(0);
  job.row.attempt = static_cast<int32_t>(row.Int(1));
  job.row.cancelled = row.Int(2) != 0;
  if (!job.row.spec.ParseFromString(row.Bytes(3))) return Damaged("spec", id);
  if (!job.row.status.ParseFromString(row.Bytes(4))) {
    return Damaged("status", id);
  }
  const std::string plan = row.Bytes(5);
  if (!plan.empty()) {
    auto parsed = std::make_shared<Plan>();
    if (!parsed->ParseFromString(plan)) return Damaged("plan", id);
    job.row.plan = std::move(parsed);
  }
  return job;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Store>> Store::Open(
    const std::string& directory) {
  ASSIGN_OR_RETURN(Database database,
                   Database::Open(absl::StrCat(directory, "/troupe.db")));
  auto store = std::unique_ptr<Store>(new Store(std::move(database)));
  RETURN_IF_ERROR(store->CreateTables());
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
    return absl::FailedPreconditionError(
        absl::StrCat("the state was written by a newer scheduler (version ",
                     version, "; this one reads up to ", kSchemaVersion,
                     "); use that build, or another --state directory"));
  }
  RETURN_IF_ERROR(database_.Execute(kTables));
  return database_.Execute(
      absl::StrCat("PRAGMA user_version = ", kSchemaVersion));
}

absl::StatusOr<std::vector<StoredJob>> Store::Load(const Limits& limits) {
  std::vector<StoredJob> jobs;
  ASSIGN_OR_RETURN(
      Statement query,
      database_.Prepare(
          "SELECT id, attempt, cancelled, spec, status, plan FROM jobs "
          "ORDER BY id DESC"));
  int ended = 0;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, query.Next());
    if (!more) break;
    ASSIGN_OR_RETURN(StoredJob job, ReadJob(query));
    if (Job::IsEnded(job.row.status.state()) &&
        ++ended > limits.ended_jobs_kept) {
      continue;
    }
    jobs.push_back(std::move(job));
  }
  int64_t room = limits.steps_kept_max;  // the newest jobs' steps come first
  for (StoredJob& job : jobs) {
    RETURN_IF_ERROR(LoadHistory(job, std::min(room, limits.steps_per_job_max)));
    room -= static_cast<int64_t>(job.steps.size());
  }
  std::reverse(jobs.begin(), jobs.end());
  return jobs;
}

absl::Status Store::LoadHistory(StoredJob& job, int64_t steps_max) {
  const int64_t id = job.row.status.id();
  ASSIGN_OR_RETURN(Statement steps,
                   database_.Prepare("SELECT record FROM steps WHERE job = ? "
                                     "ORDER BY step DESC LIMIT ?"));
  steps.Bind(1, id);
  steps.Bind(2, steps_max);
  while (true) {
    ASSIGN_OR_RETURN(const bool more, steps.Next());
    if (!more) break;
    if (!job.steps.emplace_back().ParseFromString(steps.Bytes(0))) {
      return Damaged("steps", id);
    }
  }
  std::reverse(job.steps.begin(), job.steps.end());
  ASSIGN_OR_RETURN(Statement events,
                   database_.Prepare("SELECT unix_ms, text FROM events "
                                     "WHERE job = ? ORDER BY number"));
  events.Bind(1, id);
  while (true) {
    ASSIGN_OR_RETURN(const bool more, events.Next());
    if (!more) break;
    JobEvent& event = job.events.emplace_back();
    event.set_unix_ms(events.Int(0));
    event.set_text(events.Bytes(1));
  }
  return absl::OkStatus();
}

absl::Status Store::Write(const StoreBatch& batch) {
  if (batch.empty()) return absl::OkStatus();
  RETURN_IF_ERROR(database_.Execute("BEGIN IMMEDIATE"));
  absl::Status written = WriteRows(batch);
  if (written.ok()) written = database_.Execute("COMMIT");
  // After some errors SQLite has rolled back by itself; then this is refused.
  if (!written.ok()) database_.Execute("ROLLBACK").IgnoreError();
  return written;
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
  return absl::OkStatus();
}

}  // namespace troupe
