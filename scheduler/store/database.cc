#include "scheduler/store/database.h"

#include <sqlite3.h>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/must_not_wait.h"
#include "proto/base/status.h"

namespace troupe {
namespace {

absl::Status ToStatus(sqlite3* database) {
  const int code = sqlite3_errcode(database);
  const char* name = sqlite3_db_filename(database, "main");
  const std::string message =
      absl::StrCat(name == nullptr ? "" : name, ": ", sqlite3_errmsg(database));
  if (code == SQLITE_IOERR_READ || code == SQLITE_IOERR_SHORT_READ) {
    return absl::DataLossError(message);
  }
  switch (code & 0xff) {
    case SQLITE_FULL:
      return absl::ResourceExhaustedError(
          absl::StrCat(message, "; free some space on its disk"));
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_CANTOPEN:
      return absl::PermissionDeniedError(
          absl::StrCat(message, "; may this user write there?"));
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return absl::UnavailableError(
          absl::StrCat(message, "; another process has it open"));
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return absl::DataLossError(absl::StrCat(
          message, "; move the file away to start with an empty history"));
    default:
      return absl::InternalError(message);
  }
}

}  // namespace

void Statement::Finalize::operator()(sqlite3_stmt* statement) const {
  sqlite3_finalize(statement);
}

void Database::Close::operator()(sqlite3* database) const {
  sqlite3_close_v2(database);
}

void Statement::Bind(int position, int64_t value) {
  CHECK_EQ(sqlite3_bind_int64(statement_.get(), position, value), SQLITE_OK);
}

void Statement::Bind(int position, absl::string_view bytes) {
  const int code = sqlite3_bind_blob64(statement_.get(), position, bytes.data(),
                                       bytes.size(), SQLITE_TRANSIENT);
  CHECK_EQ(code, SQLITE_OK) << "position " << position;
}

void Statement::BindRow(const Statement& row, int first) {
  const int columns = sqlite3_column_count(row.statement_.get());
  for (int column = first; column < columns; ++column) {
    CHECK_EQ(
        sqlite3_bind_value(statement_.get(), column - first + 1,
                           sqlite3_column_value(row.statement_.get(), column)),
        SQLITE_OK);
  }
}

absl::Status Statement::Run() {
  const absl::StatusOr<bool> row = Next();
  sqlite3_reset(statement_.get());
  return row.status();
}

absl::StatusOr<bool> Statement::Next() {
  CheckMayWait("the store is used");
  switch (sqlite3_step(statement_.get())) {
    case SQLITE_ROW:
      return true;
    case SQLITE_DONE:
      sqlite3_reset(statement_.get());
      return false;
    default:
      return ToStatus(database_);
  }
}

int64_t Statement::Int(int column) const {
  return sqlite3_column_int64(statement_.get(), column);
}

std::string Statement::Bytes(int column) const {
  const void* bytes = sqlite3_column_blob(statement_.get(), column);
  const int size = sqlite3_column_bytes(statement_.get(), column);
  return std::string(static_cast<const char*>(bytes), bytes ? size : 0);
}

absl::StatusOr<Database> Database::Open(const std::string& path) {
  sqlite3* handle = nullptr;
  const int flags =
      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
  const int code = sqlite3_open_v2(path.c_str(), &handle, flags, nullptr);
  CHECK(handle != nullptr) << "out of memory";
  Database database(handle);
  if (code != SQLITE_OK) return Annotate(ToStatus(handle), path);
  sqlite3_extended_result_codes(handle, 1);
  sqlite3_busy_timeout(handle, 1000);
  RETURN_IF_ERROR(database.Execute("PRAGMA journal_mode = WAL"));
  RETURN_IF_ERROR(database.Execute("PRAGMA synchronous = FULL"));
  return database;
}

absl::Status Database::Execute(const std::string& sql) {
  CheckMayWait("the store is used");
  if (sqlite3_exec(database_.get(), sql.c_str(), nullptr, nullptr, nullptr) !=
      SQLITE_OK) {
    return ToStatus(database_.get());
  }
  return absl::OkStatus();
}

absl::StatusOr<Statement> Database::Prepare(const std::string& sql) {
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(database_.get(), sql.c_str(), -1, &statement,
                         nullptr) != SQLITE_OK) {
    return ToStatus(database_.get());
  }
  return Statement(database_.get(), statement);
}

}  // namespace troupe
