#include <ostream>
#include <string>

#include "absl/strings/str_join.h"
#include "clients/cli/commands/commands.h"
#include "clients/cli/local/local_cluster.h"
#include "clients/cli/local/say_waiting.h"
#include "clients/cpp/cluster_commands.h"
#include "proto/base/status.h"

namespace troupe {
namespace {

class Down final : public Command {
 public:
  void Declare(Flags& flags) override {
    flags.Text("--dir", dir_,
               {.value = "DIR",
                .text = "The folder that was given to `troupe up` "
                        "[TROUPE_DIR]"});
    flags.Switch("--now", now_,
                 "Kill the workers at once. Without, they save their "
                 "jobs first, however long that takes");
  }

  absl::Status Run(Console& console) override {
    if (dir_.empty()) dir_ = console.environment_dir;
    if (dir_.empty()) {
      return absl::InvalidArgumentError(
          "usage: --dir is required (or TROUPE_DIR)");
    }
    ASSIGN_OR_RETURN(
        const StoppedCluster cluster,
        StopLocalCluster(
            {.news = SayWaiting(console.err, DownCommand(dir_) + " --now"),
             .hurried = [this] { return now_; },
             .dir = dir_}));
    console.out << "stopped " << cluster.stopped << " processes of " << dir_;
    if (!cluster.killed.empty()) {
      console.out << "; killed, for they did not end by themselves: "
                  << absl::StrJoin(cluster.killed, ", ");
    }
    console.out << "\n";
    return absl::OkStatus();
  }

 private:
  std::string dir_;
  bool now_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeDown() { return std::make_unique<Down>(); }

}  // namespace troupe
