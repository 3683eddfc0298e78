#include "scheduler/store/salvage.h"

#include <functional>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/base/status.h"

namespace troupe {
namespace {

using OnRow = std::function<absl::Status(const Statement& row)>;

// A part of a table, in the order of its key.
struct Part {
  std::string table;
  std::string key;  // its last column; the first column of what is read
  int64_t job = 0;  // 0: all
};

// What ended a look at a table, if something did: of the table, not of the
// caller's doing.
struct Reading {
  absl::Status damage;
  int64_t last = 0;  // the key of the last row
};

// Hands on all rows of the part from one end, as far as they can be read, or up
// to the key `until`.
absl::StatusOr<Reading> ReadFrom(Database& database, const Part& part,
                                 const char* order,
                                 const std::function<bool(int64_t)>& until,
                                 const OnRow& on_row) {
  Reading reading;
  absl::StatusOr<Statement> rows = database.Prepare(
      absl::StrCat("SELECT ", part.key, ", * FROM ", part.table,
                   part.job == 0 ? "" : " WHERE job = ?", " ORDER BY ",
                   part.key, " ", order));
  if (!rows.ok()) return rows.status();
  if (part.job != 0) rows->Bind(1, part.job);
  while (true) {
    const absl::StatusOr<bool> more = rows->Next();
    if (!more.ok()) {
      reading.damage = more.status();
      return reading;
    }
    if (!*more || until(rows->Int(0))) return reading;
    reading.last = rows->Int(0);
    RETURN_IF_ERROR(on_row(*rows));
  }
}

// From both ends. False: something between them could not be read.
absl::StatusOr<bool> ReadAll(Database& database, const Part& part,
                             const OnRow& on_row) {
  const auto never = [](int64_t) { return false; };
  ASSIGN_OR_RETURN(const Reading front,
                   ReadFrom(database, part, "ASC", never, on_row));
  if (front.damage.ok()) return true;
  const auto met = [&](int64_t key) { return key <= front.last; };
  RETURN_IF_ERROR(ReadFrom(database, part, "DESC", met, on_row).status());
  return false;
}

absl::StatusOr<bool> IsWhole(Database& database, const std::string& table) {
  ASSIGN_OR_RETURN(Statement rows,
                   database.Prepare(absl::StrCat("SELECT * FROM ", table)));
  while (true) {
    const absl::StatusOr<bool> more = rows.Next();
    if (!more.ok()) return false;
    if (!*more) return true;
  }
}

// The new name of the table.
absl::StatusOr<std::string> PutAside(Database& database,
                                     const std::string& table) {
  for (int n = 1;; ++n) {
    const std::string name = absl::StrCat("damaged_", table, "_", n);
    ASSIGN_OR_RETURN(
        Statement there,
        database.Prepare("SELECT 1 FROM sqlite_master WHERE name = ?"));
    there.Bind(1, absl::string_view(name));
    ASSIGN_OR_RETURN(const bool taken, there.Next());
    if (taken) continue;
    RETURN_IF_ERROR(database.Execute(
        absl::StrCat("ALTER TABLE ", table, " RENAME TO ", name)));
    return name;
  }
}

// All jobs that the tables speak of.
absl::StatusOr<std::set<int64_t>> JobsIn(Database& reader) {
  std::set<int64_t> ids;
  const auto add = [&](const Statement& row) {
    ids.insert(row.Int(0));
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(
      ReadAll(reader, {.table = "jobs", .key = "id"}, add).status());
  for (const char* table : {"events", "steps"}) {
    RETURN_IF_ERROR(
        ReadAll(reader, {.table = table, .key = "job"}, add).status());
  }
  return ids;
}

// Copies the row; false: it cannot be read.
absl::StatusOr<bool> CopyJob(const Connections& store, int64_t id) {
  ASSIGN_OR_RETURN(Statement row,
                   store.reader.Prepare("SELECT * FROM jobs WHERE id = ?"));
  row.Bind(1, id);
  const absl::StatusOr<bool> there = row.Next();
  if (there.ok() && !*there) return true;  // it was forgotten
  ASSIGN_OR_RETURN(
      Statement insert,
      store.writer.Prepare(there.ok()
                               ? "INSERT INTO jobs VALUES (?,?,?,?,?,?,?,?,?,?)"
                               : "INSERT INTO jobs (id) VALUES (?)"));
  if (there.ok()) {
    insert.BindRow(row, 0);
  } else {
    insert.Bind(1, id);
  }
  RETURN_IF_ERROR(insert.Run());
  return there.ok();
}

absl::Status SalvageJobs(const Connections& store,
                         const std::string& make_tables,
                         std::vector<std::string>& lost) {
  ASSIGN_OR_RETURN(const std::string aside, PutAside(store.writer, "jobs"));
  RETURN_IF_ERROR(store.writer.Execute(make_tables));
  ASSIGN_OR_RETURN(const std::set<int64_t> ids, JobsIn(store.reader));
  for (const int64_t id : ids) {
    ASSIGN_OR_RETURN(const bool copied, CopyJob(store, id));
    if (!copied) {
      lost.push_back(absl::StrCat("job ", id, ": its record cannot be read"));
    }
  }
  lost.push_back(
      absl::StrCat("troupe.db: a page of the table jobs is damaged; what is "
                   "left of it is ",
                   aside));
  return absl::OkStatus();
}

// Of a table whose rows belong to jobs.
absl::Status SalvageHistory(const Connections& store, const std::string& table,
                            const std::string& number,
                            const std::string& make_tables,
                            std::vector<std::string>& lost) {
  ASSIGN_OR_RETURN(const std::string aside, PutAside(store.writer, table));
  RETURN_IF_ERROR(store.writer.Execute(make_tables));
  ASSIGN_OR_RETURN(Statement insert,
                   store.writer.Prepare(absl::StrCat("INSERT INTO ", table,
                                                     " VALUES (?,?,?,?)")));
  std::vector<int64_t> jobs;
  const auto add = [&](const Statement& row) {
    jobs.push_back(row.Int(0));
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(
      ReadAll(store.writer, {.table = "jobs", .key = "id"}, add).status());
  std::vector<int64_t> torn;
  for (const int64_t job : jobs) {
    const auto copy = [&](const Statement& row) {
      insert.BindRow(row, 1);
      return insert.Run();
    };
    ASSIGN_OR_RETURN(
        const bool whole,
        ReadAll(store.reader, {.table = table, .key = number, .job = job},
                copy));
    if (!whole) torn.push_back(job);
  }
  lost.push_back(absl::StrCat(
      "troupe.db: a page of the table ", table, " is damaged: some ", table,
      " of ", torn.size() == 1 ? "job " : "jobs ", absl::StrJoin(torn, ", "),
      " are left out; what is left of it is ", aside));
  return absl::OkStatus();
}

// The jobs run on without it.
absl::Status SalvageHandOuts(const Connections& store,
                             const std::string& make_tables,
                             std::vector<std::string>& lost) {
  ASSIGN_OR_RETURN(const std::string aside,
                   PutAside(store.writer, "hand_outs"));
  RETURN_IF_ERROR(store.writer.Execute(make_tables));
  lost.push_back(absl::StrCat(
      "troupe.db: a page of the table hand_outs is damaged: jobs that run now "
      "cannot go on from copies; what is left of it is ",
      aside));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<std::string>> Salvage(
    const Connections& store, const std::string& make_tables) {
  std::vector<std::string> lost;
  ASSIGN_OR_RETURN(const bool jobs, IsWhole(store.reader, "jobs"));
  if (!jobs) RETURN_IF_ERROR(SalvageJobs(store, make_tables, lost));
  const std::pair<const char*, const char*> histories[] = {
      {"steps", "step"}, {"events", "number"}};
  for (const auto& [table, number] : histories) {
    ASSIGN_OR_RETURN(const bool whole, IsWhole(store.reader, table));
    if (whole) continue;
    RETURN_IF_ERROR(SalvageHistory(store, table, number, make_tables, lost));
  }
  ASSIGN_OR_RETURN(const bool hand_outs, IsWhole(store.reader, "hand_outs"));
  if (!hand_outs) RETURN_IF_ERROR(SalvageHandOuts(store, make_tables, lost));
  return lost;
}

}  // namespace troupe
