#include "clients/cli/local/cluster_file.h"

#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "clients/cpp/process_space.h"
#include "nlohmann/json.hpp"
#include "proto/base/file_text.h"
#include "proto/base/status.h"
#include "storage/disk/file_lock.h"
#include "storage/disk/new_file.h"

namespace troupe {
namespace {

using Json = nlohmann::ordered_json;

std::string PathOf(const std::string& dir) {
  return std::filesystem::path(dir) / kClusterFile;
}

bool IsMember(const Json& json) {
  return json.is_object() && json.contains("name") &&
         json["name"].is_string() && json.contains("pid") &&
         json["pid"].is_number_integer() && json["pid"] > 0 &&
         json.contains("start_ticks") &&
         json["start_ticks"].is_number_integer();
}

template <typename Value>
Value ValueOr(const Json& json, const char* key, const Value& other) {
  const auto found = json.find(key);
  if (found == json.end() || found->type() != Json(other).type()) return other;
  return found->template get<Value>();
}

std::vector<std::string> RootsIn(const Json& json) {
  std::vector<std::string> roots;
  for (const Json& root : ValueOr(json, "roots", Json::array())) {
    if (root.is_string()) roots.push_back(root.get<std::string>());
  }
  return roots;
}

// What an older build did not write is left unsaid.
WorkerShare ShareIn(const Json& json) {
  return {.threads =
              static_cast<int>(ValueOr<uint64_t>(json, "threads", uint64_t{0})),
          .device_memory = ValueOr<std::string>(json, "device_memory", ""),
          .host_memory = ValueOr<std::string>(json, "host_memory", ""),
          .nvme = ValueOr<std::string>(json, "nvme", ""),
          .nvme_size = ValueOr<std::string>(json, "nvme_size", ""),
          .roots = RootsIn(json),
          .gpu = ValueOr(json, "gpu", false)};
}

absl::Status Write(const std::string& dir,
                   const std::vector<ClusterMember>& members) {
  const ProcessSpace space = ThisProcessSpace();
  Json json = {{"host", space.host},
               {"boot", space.boot},
               {"pids", space.pids},
               {"members", Json::array()}};
  for (const ClusterMember& member : members) {
    Json entry = {{"name", member.name},
                  {"pid", member.process.pid},
                  {"start_ticks", member.process.start_ticks}};
    if (member.share != WorkerShare()) {
      entry["threads"] = member.share.threads;
      entry["device_memory"] = member.share.device_memory;
      entry["host_memory"] = member.share.host_memory;
      entry["nvme"] = member.share.nvme;
      entry["nvme_size"] = member.share.nvme_size;
      entry["roots"] = member.share.roots;
      entry["gpu"] = member.share.gpu;
    }
    if (!member.scheduler.empty()) {
      entry["scheduler"] = member.scheduler;
      entry["insecure"] = member.insecure;
    }
    json["members"].push_back(std::move(entry));
  }
  return ReplaceFile(PathOf(dir), absl::StrCat(json.dump(1), "\n"));
}

}  // namespace

absl::StatusOr<std::vector<ClusterMember>> ReadClusterFile(
    const std::string& dir) {
  const absl::optional<std::string> text = FileText(PathOf(dir));
  if (!text.has_value()) return std::vector<ClusterMember>();
  const Json whole = Json::parse(*text, nullptr, false);
  if (whole.is_object() && LiveElsewhere(ProcessSpaceIn(whole), dir)) {
    const std::string place = PlaceName(ProcessSpaceIn(whole));
    return absl::FailedPreconditionError(
        absl::StrCat("the cluster of ", dir, " runs on ", place,
                     "; run this command there (if ", place,
                     " is gone for good, remove ", PathOf(dir), ")"));
  }
  // An older build wrote no more than the members.
  const Json json =
      whole.is_object() && whole.contains("members") ? whole["members"] : whole;
  std::vector<ClusterMember> members;
  bool is_ours = json.is_array();
  for (size_t i = 0; is_ours && i < json.size(); ++i) {
    is_ours = IsMember(json[i]);
    if (!is_ours) break;
    members.push_back({json[i]["name"].get<std::string>(),
                       {.pid = json[i]["pid"].get<int64_t>(),
                        .start_ticks = json[i]["start_ticks"].get<uint64_t>()},
                       ShareIn(json[i]),
                       ValueOr<std::string>(json[i], "scheduler", ""),
                       ValueOr(json[i], "insecure", false)});
  }
  if (is_ours) return members;
  return absl::DataLossError(
      absl::StrCat(PathOf(dir),
                   " is not as troupe up writes it; look for its processes "
                   "with ps, then remove the file"));
}

absl::Status ChangeClusterFile(
    const std::string& dir,
    absl::FunctionRef<void(std::vector<ClusterMember>& members)> change) {
  ASSIGN_OR_RETURN(const FileLock lock,
                   FileLock::Await(std::filesystem::path(dir) / "pids.lock",
                                   ThisProcessName()));
  ASSIGN_OR_RETURN(std::vector<ClusterMember> members, ReadClusterFile(dir));
  change(members);
  if (!members.empty()) return Write(dir, members);
  std::error_code error;
  std::filesystem::remove(PathOf(dir), error);
  if (!error) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat(PathOf(dir), ": remove: ", error.message()));
}

}  // namespace troupe
