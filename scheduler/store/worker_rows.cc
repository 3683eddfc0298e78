#include "scheduler/store/worker_rows.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "proto/base/status.h"

namespace troupe {
namespace {

// Reasons are on one line each.
std::string FailuresText(const std::vector<LocalFailure>& failures) {
  std::string text;
  for (const LocalFailure& failure : failures) {
    absl::StrAppend(&text, failure.job.value(), " ", failure.why, "\n");
  }
  return text;
}

std::vector<LocalFailure> ParseFailures(const std::string& text) {
  std::vector<LocalFailure> failures;
  for (const auto line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    const std::pair<std::string, std::string> parts =
        absl::StrSplit(line, absl::MaxSplits(' ', 1));
    int64_t job = 0;
    if (absl::SimpleAtoi(parts.first, &job)) {
      failures.push_back({JobId(job), parts.second});
    }
  }
  return failures;
}

}  // namespace

absl::StatusOr<std::vector<WorkerRecord>> ReadWorkers(Database& database) {
  ASSIGN_OR_RETURN(
      Statement query,
      database.Prepare("SELECT name, cordoned, why, set_aside, failures "
                       "FROM workers ORDER BY name"));
  std::vector<WorkerRecord> workers;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, query.Next());
    if (!more) return workers;
    workers.push_back({.name = query.Bytes(0),
                       .cordoned = query.Int(1) != 0,
                       .cordoned_why = query.Bytes(2),
                       .failures = ParseFailures(query.Bytes(4)),
                       .set_aside = query.Int(3) != 0});
  }
}

absl::Status WriteWorkers(Database& database,
                          const std::map<std::string, WorkerRecord>& workers) {
  if (workers.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(
      Statement forget,
      database.Prepare("DELETE FROM workers WHERE name = CAST(? AS TEXT)"));
  ASSIGN_OR_RETURN(
      Statement write,
      database.Prepare("INSERT OR REPLACE INTO workers VALUES (CAST(? AS TEXT),"
                       " ?, CAST(? AS TEXT), ?, CAST(? AS TEXT))"));
  for (const auto& [name, worker] : workers) {
    Statement& row = worker.empty() ? forget : write;
    row.Bind(1, name);
    if (!worker.empty()) {
      row.Bind(2, int64_t{worker.cordoned});
      row.Bind(3, worker.cordoned_why);
      row.Bind(4, int64_t{worker.set_aside});
      row.Bind(5, FailuresText(worker.failures));
    }
    RETURN_IF_ERROR(row.Run());
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<HostTopology>> ReadHosts(Database& database) {
  ASSIGN_OR_RETURN(
      Statement query,
      database.Prepare("SELECT links FROM host_links ORDER BY host"));
  std::vector<HostTopology> hosts;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, query.Next());
    if (!more) return hosts;
    HostTopology links;
    if (links.ParseFromString(query.Bytes(0))) hosts.push_back(links);
  }
}

absl::Status WriteHosts(Database& database,
                        const std::map<std::string, HostTopology>& hosts) {
  if (hosts.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(Statement row,
                   database.Prepare("INSERT OR REPLACE INTO host_links VALUES "
                                    "(CAST(? AS TEXT), ?)"));
  for (const auto& [name, links] : hosts) {
    row.Bind(1, name);
    row.Bind(2, links.SerializeAsString());
    RETURN_IF_ERROR(row.Run());
  }
  return absl::OkStatus();
}

}  // namespace troupe
