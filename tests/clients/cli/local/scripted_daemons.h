// Scripts in place of the daemons: the scheduler points at a fake that runs in
// the test, workers write down their names, and both stay until they are told
// to go.
#ifndef TROUPE_TESTS_CLIENTS_CLI_LOCAL_SCRIPTED_DAEMONS_H_
#define TROUPE_TESTS_CLIENTS_CLI_LOCAL_SCRIPTED_DAEMONS_H_

#include <atomic>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/clients/cpp/fake_scheduler.h"

namespace troupe {

class ScriptedDaemons {
 public:
  // Writes the scripts into `folder`, anew. Workers that have started are those
  // that `scheduler`, which must outlive this, lists.
  ScriptedDaemons(const std::filesystem::path& folder,
                  FakeJobScheduler& scheduler);

  // Where both programs are, under their names.
  const std::filesystem::path& folder() const { return folder_; }
  // In place of a daemon's, until WriteScripts puts them there again.
  void Script(const std::string& name, const std::string& body) const;
  void WriteScripts() const;

  // Those that have written down their names, ended or not.
  std::vector<WorkerStatus> Workers() const;
  // What one was started with; empty where there is none.
  std::string Arguments(int64_t pid) const;

  std::atomic<WorkerStatus::State> registered_as{WorkerStatus::IDLE};
  std::atomic<int64_t> job{0};  // of each worker

 private:
  const std::filesystem::path folder_;
  const std::string scheduler_;  // its address
};

}  // namespace troupe

#endif  // TROUPE_TESTS_CLIENTS_CLI_LOCAL_SCRIPTED_DAEMONS_H_
