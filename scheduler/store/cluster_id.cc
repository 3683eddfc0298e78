#include "scheduler/store/cluster_id.h"

#include <algorithm>
#include <fstream>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "proto/base/log.h"
#include "proto/base/random_id.h"
#include "proto/base/status.h"
#include "storage/disk/new_file.h"

namespace troupe {
namespace {

constexpr size_t kDigits = 16;

// Empty: there is none.
std::string InFile(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) return "";
  const std::string id(absl::StripAsciiWhitespace(line));
  if (id.size() == kDigits &&
      std::all_of(id.begin(), id.end(), absl::ascii_isxdigit)) {
    return id;
  }
  LogWarning(absl::StrCat(path, ": no cluster's id, which has ", kDigits,
                          " hexadecimal digits; it is written anew"));
  return "";
}

absl::StatusOr<std::string> InTable(Database& database) {
  ASSIGN_OR_RETURN(Statement query, database.Prepare("SELECT id FROM cluster"));
  ASSIGN_OR_RETURN(const bool any, query.Next());
  return any ? query.Bytes(0) : "";
}

absl::Status PutInTable(const std::string& id, Database& database) {
  ASSIGN_OR_RETURN(
      Statement put,
      database.Prepare(
          "INSERT OR REPLACE INTO cluster VALUES (1, CAST(? AS TEXT))"));
  put.Bind(1, absl::string_view(id));
  return put.Run();
}

}  // namespace

absl::StatusOr<std::string> EnsureClusterId(const std::string& directory,
                                            Database& database) {
  const std::string path = absl::StrCat(directory, "/cluster_id");
  const std::string in_file = InFile(path);
  const absl::StatusOr<std::string> in_table = InTable(database);
  absl::Status table = in_table.status();
  if (!table.ok() && !absl::IsDataLoss(table)) return table;
  std::string id = in_file;
  if (id.empty() && in_table.ok()) id = *in_table;
  if (id.empty()) id = RandomId();
  if (in_file != id) {
    RETURN_IF_ERROR(ReplaceFile(path, absl::StrCat(id, "\n")));
  }
  if (in_table.ok() && *in_table != id) table = PutInTable(id, database);
  if (!table.ok() && !absl::IsDataLoss(table)) return table;
  if (!table.ok()) {
    LogWarning(absl::StrCat("the table cluster is damaged: ", table.message(),
                            "; the cluster's id is ", id, ", by ", path));
  }
  return id;
}

}  // namespace troupe
