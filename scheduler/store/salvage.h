// What can still be read of a damaged store: a torn page or a bad sector makes
// some rows of a table unreadable, and the table unfit to be written.
//
// A table that cannot be read to its end is renamed (damaged_steps_1, for
// somebody to look at), a new one takes its place, and gets all rows that can
// be reached from either end of what the index leads to. A job of which only
// the number is known keeps that: its row is there, without a spec, and Load
// says what it says of any damaged record.
#ifndef TROUPE_SCHEDULER_STORE_SALVAGE_H_
#define TROUPE_SCHEDULER_STORE_SALVAGE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "scheduler/store/database.h"

namespace troupe {

// Two to the same file: after a read that met a damaged page SQLite refuses to
// write in the same transaction.
struct Connections {
  Database& reader;
  Database& writer;  // in a transaction of the caller's
};

// `make_tables` is the SQL that makes the tables that are missing. What was
// lost, a line each.
absl::StatusOr<std::vector<std::string>> Salvage(
    const Connections& store, const std::string& make_tables);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_STORE_SALVAGE_H_
