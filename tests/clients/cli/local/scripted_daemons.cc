#include "tests/clients/cli/local/scripted_daemons.h"

#include <fstream>

#include "absl/strings/str_cat.h"

namespace troupe {

namespace fs = std::filesystem;

ScriptedDaemons::ScriptedDaemons(const fs::path& folder,
                                 FakeJobScheduler& scheduler)
    : folder_(folder), scheduler_(scheduler.address()) {
  fs::remove_all(folder_);
  fs::create_directories(folder_);
  WriteScripts();
  scheduler.workers = [this] { return Workers(); };
}

void ScriptedDaemons::WriteScripts() const {
  Script("troupe-scheduler",
         absl::StrCat("echo \"$@\" > \"$2/scheduler.args\"\n",
                      "echo '{\"grpc\": \"", scheduler_,
                      "\", \"security\": \"none\", \"pid\": '$$'}' > "
                      "\"$2/endpoints.json\"\n",
                      "exec sleep 1000"));
  // The name comes with the content: they are read while they start.
  Script("troupe-worker",
         absl::StrCat("echo \"$@\" > '", folder_.string(), "'/$$.new\n", "mv '",
                      folder_.string(), "'/$$.new '", folder_.string(),
                      "'/$$.args\nexec sleep 1000"));
}

void ScriptedDaemons::Script(const std::string& name,
                             const std::string& body) const {
  std::ofstream(folder_ / name) << "#!/bin/sh\n" << body << "\n";
  fs::permissions(folder_ / name, fs::perms::owner_all);
}

std::vector<WorkerStatus> ScriptedDaemons::Workers() const {
  std::vector<WorkerStatus> workers;
  for (const auto& file : fs::directory_iterator(folder_)) {
    if (file.path().extension() != ".args") continue;
    WorkerStatus& worker = workers.emplace_back();
    worker.set_pid(std::stoll(file.path().stem().string()));
    worker.set_state(registered_as);
    worker.set_job(job);
  }
  return workers;
}

std::string ScriptedDaemons::Arguments(int64_t pid) const {
  std::string arguments;
  std::ifstream file(folder_ / absl::StrCat(pid, ".args"));
  std::getline(file, arguments);
  return arguments;
}

}  // namespace troupe
