// SQLite behind two small classes, so that its handles have owners and its
// result codes become Status in one place.
//
//   ASSIGN_OR_RETURN(Statement insert, database.Prepare("INSERT ... (?, ?)"));
//   insert.Bind(1, id);
//   insert.Bind(2, text);
//   RETURN_IF_ERROR(insert.Run());
//
// One thread at a time.
#ifndef TROUPE_SCHEDULER_STORE_DATABASE_H_
#define TROUPE_SCHEDULER_STORE_DATABASE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

struct sqlite3;
struct sqlite3_stmt;

namespace troupe {

// Positions of Bind count from 1, columns from 0, as SQLite has it.
class Statement {
 public:
  void Bind(int position, int64_t value);
  void Bind(int position, absl::string_view bytes);  // copied
  // All columns of a row from `first` on, at positions from 1.
  void BindRow(const Statement& row, int first);

  // Runs to the end and is ready to be bound again.
  absl::Status Run();
  // True: a row is there. False: that was the last.
  absl::StatusOr<bool> Next();

  int64_t Int(int column) const;
  std::string Bytes(int column) const;

 private:
  friend class Database;
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  Statement(sqlite3* database, sqlite3_stmt* statement)
      : database_(database), statement_(statement) {}

  sqlite3* database_;  // the Database outlives its statements
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

class Database {
 public:
  // Creates the file where it is missing; WAL, every commit synced.
  static absl::StatusOr<Database> Open(const std::string& path);

  absl::Status Execute(const std::string& sql);
  absl::StatusOr<Statement> Prepare(const std::string& sql);

 private:
  struct Close {
    void operator()(sqlite3* database) const;
  };
  explicit Database(sqlite3* database) : database_(database) {}

  std::unique_ptr<sqlite3, Close> database_;
};

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_STORE_DATABASE_H_
