#include "clients/cpp/find_scheduler.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "clients/cpp/process_state.h"
#include "nlohmann/json.hpp"

namespace troupe {
namespace {

bool IsHostPort(const std::string& text) {
  const size_t colon = text.rfind(':');
  int port = 0;
  return colon != std::string::npos && colon > 0 &&
         absl::SimpleAtoi(text.substr(colon + 1), &port) && port > 0 &&
         port < 65536;
}

}  // namespace

absl::StatusOr<Endpoints> ReadEndpoints(const std::string& dir) {
  const std::string path = (std::filesystem::path(dir) / kEndpointsFile);
  std::ifstream in(path);
  if (!in) {
    return absl::NotFoundError(
        absl::StrCat("no cluster in ", dir, " (there is no ", path,
                     "); start one with: troupe up --workers N --dir ", dir));
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
  Endpoints endpoints;
  endpoints.grpc = json["grpc"].get<std::string>();
  if (json.contains("http") && json["http"].is_string()) {
    endpoints.http = json["http"].get<std::string>();
  }
  if (json.contains("pid") && json["pid"].is_number_integer()) {
    endpoints.pid = json["pid"].get<int64_t>();
  }
  if (endpoints.pid != 0 && !IsRunning(endpoints.pid)) {
    return absl::FailedPreconditionError(
        absl::StrCat("the scheduler of ", dir, " is gone (process ",
                     endpoints.pid, "); its last words are in ", dir,
                     "/logs; start again with: troupe down --dir ", dir,
                     " && troupe up --workers N --dir ", dir));
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
    return Endpoints{.grpc = options.scheduler, .http = "", .pid = 0};
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
