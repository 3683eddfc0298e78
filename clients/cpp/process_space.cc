#include "clients/cpp/process_space.h"

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "storage/disk/file_lock.h"

namespace troupe {

std::string TextIn(const nlohmann::json& json, const char* key) {
  if (!json.contains(key) || !json[key].is_string()) return "";
  return json[key].get<std::string>();
}

ProcessSpace ProcessSpaceIn(const nlohmann::json& json) {
  ProcessSpace space = {.host = TextIn(json, "host"),
                        .boot = TextIn(json, "boot")};
  if (json.contains("pids") && json["pids"].is_number_unsigned()) {
    space.pids = json["pids"].get<uint64_t>();
  }
  return space;
}

bool LiveElsewhere(const ProcessSpace& space, const std::string& dir) {
  const ProcessSpace here = ThisProcessSpace();
  if (space.boot.empty() || space.boot != here.boot) {
    return !space.host.empty() && space.host != here.host;
  }
  return space.pids != here.pids &&
         FileLock::IsHeld(absl::StrCat(dir, "/lock"));
}

std::string PlaceName(const ProcessSpace& space) {
  const bool is_container = space.boot == ThisProcessSpace().boot;
  return absl::StrCat(space.host, is_container ? " in another container" : "");
}

}  // namespace troupe
