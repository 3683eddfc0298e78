#include "proto/trust/worker_names.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "proto/base/one_line.h"

namespace troupe {
namespace {

constexpr absl::string_view kNameScheme = "troupe:worker-name:";
constexpr size_t kNamesBytesMax = 100;

bool Allows(absl::string_view names, absl::string_view name) {
  return absl::ConsumeSuffix(&names, "*") ? absl::StartsWith(name, names)
                                          : name == names;
}

}  // namespace

absl::Status CheckWorkerNames(absl::string_view names) {
  absl::string_view start = names;
  absl::ConsumeSuffix(&start, "*");
  const bool is_plain =
      std::all_of(start.begin(), start.end(), [](unsigned char c) {
        return absl::ascii_isalnum(c) || c == '.' || c == '_' || c == '-';
      });
  if (is_plain && !names.empty() && names.size() <= kNamesBytesMax) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "\"", OneLine(names, kNamesBytesMax), "\" is no worker's name; use at ",
      "most ", kNamesBytesMax, " letters, digits, '.', '_' and '-', and a '*' ",
      "at the end for all names that begin so"));
}

std::string WorkerNamesUri(absl::string_view names) {
  return absl::StrCat(kNameScheme, names);
}

absl::optional<std::string> WorkerNamesOfUri(absl::string_view uri) {
  if (!absl::ConsumePrefix(&uri, kNameScheme)) return absl::nullopt;
  return std::string(uri);
}

absl::Status CheckMayBeNamed(absl::string_view name,
                             const std::vector<std::string>& allowed) {
  if (allowed.empty()) {
    const std::string shown = OneLine(name, kNamesBytesMax);
    return absl::PermissionDeniedError(absl::StrCat(
        "the worker's certificate says no worker's name, and so is not for ",
        shown, "; make one that does: troupe cluster certificate HOST --role ",
        "worker --name ", shown, ", or, of another authority, with the URI ",
        WorkerNamesUri(shown), " among its alternative names. Until all have ",
        "such ones, troupe-scheduler --unnamed-workers takes it for any name"));
  }
  for (const std::string& names : allowed) {
    if (Allows(names, name)) return absl::OkStatus();
  }
  return absl::PermissionDeniedError(absl::StrCat(
      "the worker's certificate is for the name ",
      OneLine(absl::StrJoin(allowed, ", "), 4 * kNamesBytesMax), ", not for ",
      OneLine(name, kNamesBytesMax),
      "; start it with --name and one of those, ",
      "or make a certificate with troupe cluster certificate --name"));
}

}  // namespace troupe
