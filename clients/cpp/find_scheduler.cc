#include "clients/cpp/find_scheduler.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "clients/cpp/cluster_commands.h"
#include "clients/cpp/process_space.h"
#include "nlohmann/json.hpp"
#include "proto/base/shell_word.h"

namespace troupe {
namespace {

bool IsHostPort(const std::string& text) {
  const size_t colon = text.rfind(':');
  int port = 0;
  return colon != std::string::npos && colon > 0 &&
         absl::SimpleAtoi(text.substr(colon + 1), &port) && port > 0 &&
         port < 65536;
}

bool IsLoopback(const std::string& address) {
  for (const char* host : {"127.", "localhost:", "[::1]:"}) {
    if (absl::StartsWith(address, host)) return true;
  }
  return false;
}

std::string TextIn(const nlohmann::json& json, const char* key) {
  if (!json.contains(key) || !json[key].is_string()) return "";
  return json[key].get<std::string>();
}

Endpoints FromJson(const nlohmann::json& json) {
  Endpoints endpoints = {.grpc = TextIn(json, "grpc"),
                         .http = TextIn(json, "http"),
                         .space = ProcessSpaceIn(json),
                         .process = {}};
  if (json.contains("pid") && json["pid"].is_number_integer()) {
    endpoints.process.pid = json["pid"].get<int64_t>();
  }
  if (json.contains("start_ticks") && json["start_ticks"].is_number_integer()) {
    endpoints.process.start_ticks = json["start_ticks"].get<uint64_t>();
  }
  return endpoints;
}

// As far as is known: without its start, any process with the id will do.
bool MayRun(const ProcessId& process) {
  if (process.start_ticks != 0) return IsRunning(process);
  return process.pid == 0 || IsRunning(process.pid);
}

}  // namespace

absl::StatusOr<Endpoints> ReadEndpoints(const std::string& dir) {
  const std::string path = (std::filesystem::path(dir) / kEndpointsFile);
  std::ifstream in(path);
  if (!in) {
    return absl::NotFoundError(
        absl::StrCat("no cluster in ", dir, " (there is no ", path,
                     "); start one with: ", UpCommand(dir)));
  }
  std::stringstream text;
  text << in.rdbuf();
  const nlohmann::json json =
      nlohmann::json::parse(text.str(), nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("grpc") ||
      !json["grpc"].is_string()) {
    return absl::DataLossError(
        absl::StrCat(path,
                     " does not say where the scheduler is; bring the "
                     "cluster down and up again"));
  }
  const Endpoints endpoints = FromJson(json);
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
    return absl::FailedPreconditionError(absl::StrCat(
        "the scheduler of ", dir, " is gone (process ", endpoints.process.pid,
        "); its last words are in ", dir,
        "/logs; start again with: ", DownCommand(dir), " && ", UpCommand(dir)));
  }
  return endpoints;
}

absl::StatusOr<Endpoints> FindScheduler(const FindSchedulerOptions& options) {
  if (!options.scheduler.empty()) {
    if (!IsHostPort(options.scheduler)) {
      return absl::InvalidArgumentError(
          absl::StrCat("--scheduler ", options.scheduler,
                       ": expected HOST:PORT, as in 127.0.0.1:4321"));
    }
    return Endpoints{.grpc = options.scheduler};
  }
  if (!options.dir.empty()) return ReadEndpoints(options.dir);
  if (!options.environment_dir.empty()) {
    return ReadEndpoints(options.environment_dir);
  }
  return absl::InvalidArgumentError(
      "which cluster? Give --dir DIR (as in troupe up) or --scheduler "
      "HOST:PORT, or set TROUPE_DIR");
}

}  // namespace troupe
