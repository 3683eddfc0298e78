#include "clients/cpp/find_scheduler.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "clients/cpp/cluster_commands.h"
#include "clients/cpp/process_space.h"
#include "nlohmann/json.hpp"
#include "proto/base/file_text.h"
#include "proto/base/shell_word.h"
#include "proto/base/status.h"
#include "proto/trust/cluster_trust.h"
#include "proto/trust/loopback.h"

namespace troupe {
namespace {

bool IsHostPort(const std::string& text) {
  const size_t colon = text.rfind(':');
  int port = 0;
  return colon != std::string::npos && colon > 0 &&
         absl::SimpleAtoi(text.substr(colon + 1), &port) && port > 0 &&
         port < 65536;
}

PeerTrust TrustOf(const std::string& dir) {
  return {.certificates = MemberDirectory(dir, PeerRole::kClient)};
}

Endpoints FromJson(const nlohmann::json& json, const std::string& dir) {
  Endpoints endpoints = {.grpc = TextIn(json, "grpc"),
                         .http = TextIn(json, "http"),
                         .space = ProcessSpaceIn(json),
                         .process = {},
                         .trust = TrustOf(dir)};
  // The user who started it has said so once.
  if (TextIn(json, "security") == "none") endpoints.trust = {.insecure = 1};
  if (json.contains("pid") && json["pid"].is_number_integer()) {
    endpoints.process.pid = json["pid"].get<int64_t>();
  }
  if (json.contains("start_ticks") && json["start_ticks"].is_number_integer()) {
    endpoints.process.start_ticks = json["start_ticks"].get<uint64_t>();
  }
  return endpoints;
}

// What it says of the scheduler, and the certificates in it, are believed.
absl::Status CheckIsOurs(const std::string& dir) {
  struct stat info = {};
  if (stat(dir.c_str(), &info) != 0) return absl::OkStatus();
  const bool is_ours =
      geteuid() == 0 || info.st_uid == geteuid() || info.st_uid == 0;
  const bool others_write = (info.st_mode & S_IWOTH) != 0;
  if (is_ours && !others_write) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat(
      "the folder ", dir, " ",
      is_ours ? "may be written by everybody"
              : absl::StrCat("belongs to another user (", info.st_uid, ")"),
      ", who could have this command talk to another scheduler; use a ",
      "folder of yours",
      is_ours ? absl::StrCat(", or: chmod o-w ", ShellWord(dir)) : ""));
}

// As far as is known: without its start, any process with the id will do.
bool MayRun(const ProcessId& process) {
  if (process.start_ticks != 0) return IsRunning(process);
  return process.pid == 0 || IsRunning(process.pid);
}

}  // namespace

absl::StatusOr<Endpoints> ReadEndpoints(const std::string& dir) {
  const std::string path = (std::filesystem::path(dir) / kEndpointsFile);
  const absl::optional<std::string> text = FileText(path);
  if (!text.has_value()) {
    return absl::NotFoundError(
        absl::StrCat("no cluster in ", dir, " (there is no ", path,
                     "); start one with: ", UpCommand(dir)));
  }
  RETURN_IF_ERROR(CheckIsOurs(dir));
  const nlohmann::json json =
      nlohmann::json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("grpc") ||
      !json["grpc"].is_string()) {
    return absl::DataLossError(
        absl::StrCat(path,
                     " does not say where the scheduler is; bring the "
                     "cluster down and up again"));
  }
  const Endpoints endpoints = FromJson(json, dir);
  if (LiveElsewhere(endpoints.space, dir)) {
    if (!IsLoopback(endpoints.grpc)) return endpoints;
    const std::string place = PlaceName(endpoints.space);
    return absl::FailedPreconditionError(absl::StrCat(
        "the scheduler of ", dir, " runs on ", place, " and is ",
        "reached there only (", endpoints.grpc, "); run this command there, ",
        "or have the scheduler listen to others: troupe-scheduler --state ",
        ShellWord(dir), " --listen 0.0.0.0:PORT"));
  }
  if (!MayRun(endpoints.process)) {
    return absl::FailedPreconditionError(
        absl::StrCat("the scheduler of ", dir, " is gone (process ",
                     endpoints.process.pid, "); its last words are in ", dir,
                     "/logs; start it again, and its workers go on, with: ",
                     UpCommand(dir)));
  }
  return endpoints;
}

namespace {

// What an option says of trust wins over what a folder says.
Endpoints WithTrust(Endpoints endpoints, const FindSchedulerOptions& options) {
  if (!options.certificates.empty()) {
    endpoints.trust = {.certificates = options.certificates};
  }
  endpoints.trust.insecure += options.insecure;
  return endpoints;
}

}  // namespace

absl::StatusOr<Endpoints> FindScheduler(const FindSchedulerOptions& options) {
  const std::string& dir =
      options.dir.empty() ? options.environment_dir : options.dir;
  if (!options.scheduler.empty()) {
    if (!IsHostPort(options.scheduler)) {
      return absl::InvalidArgumentError(
          absl::StrCat("--scheduler ", options.scheduler,
                       ": expected HOST:PORT, as in 127.0.0.1:4321"));
    }
    Endpoints endpoints = {.grpc = options.scheduler};
    if (!dir.empty()) endpoints.trust = TrustOf(dir);
    return WithTrust(endpoints, options);
  }
  if (!dir.empty()) {
    ASSIGN_OR_RETURN(const Endpoints endpoints, ReadEndpoints(dir));
    return WithTrust(endpoints, options);
  }
  return absl::InvalidArgumentError(
      "which cluster? Give --dir DIR (as in troupe up) or --scheduler "
      "HOST:PORT, or set TROUPE_DIR");
}

}  // namespace troupe
