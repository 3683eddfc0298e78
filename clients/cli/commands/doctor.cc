#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "clients/cli/cluster_flags.h"
#include "clients/cli/commands/commands.h"
#include "clients/cli/local/process.h"
#include "clients/cli/local/programs.h"
#include "clients/cli/view/message_json.h"
#include "clients/cli/view/network_view.h"
#include "proto/base/status.h"

namespace troupe {
namespace {

class Doctor final : public Command {
 public:
  void Declare(Flags& flags) override {
    flags.Switch("--json", json_, "Print the findings as JSON");
    flags.Integer("--port", port_, {0, 65535},
                  {.value = "PORT",
                   .text = "Try to listen on this port [one that is free]"});
    flags.Text("--state", state_,
               {.value = "DIR",
                .text = "Try this folder for a cluster's state [TROUPE_DIR, "
                        "else the current folder]"});
    flags.Text("--nvme", nvme_,
               {.value = "DIR",
                .text = "Try and measure this directory for the nvme tier"});
    flags.Switch("--network", network_,
                 "Show instead what a cluster's workers measured between "
                 "their hosts, and which pairs of hosts are slow");
    cluster_.Declare(flags);
  }

  absl::Status Run(Console& console) override {
    const bool of_machine = !state_.empty() || !nvme_.empty() || port_ > 0;
    if (network_ ? of_machine : cluster_.is_given()) {
      return absl::InvalidArgumentError(
          network_ ? "--network looks at a cluster: --port, --state and --nvme "
                     "are for checks of this machine"
                   : "--dir and --scheduler name the cluster that --network "
                     "looks at; without it this machine is checked");
    }
    if (network_) return ShowNetwork(console);
    if (state_.empty()) state_ = console.environment_dir;
    ASSIGN_OR_RETURN(const std::string program,
                     FindProgram("troupe-worker", ThisProgram()));
    std::vector<std::string> command = {program, "doctor", "--port",
                                        absl::StrCat(port_)};
    if (!state_.empty()) command.insert(command.end(), {"--state", state_});
    if (!nvme_.empty()) command.insert(command.end(), {"--nvme", nvme_});
    if (json_) command.push_back("--json");
    ASSIGN_OR_RETURN(const FilterOutcome outcome,
                     RunToEnd({.command = std::move(command)}));
    console.out << outcome.out << std::flush;
    if (outcome.exit_code == 0) return absl::OkStatus();
    if (outcome.exit_code != 1 || outcome.out.empty()) {
      return absl::AbortedError(
          absl::StrCat(program, " doctor ended with ", outcome.exit_code, ": ",
                       absl::StripTrailingAsciiWhitespace(outcome.err)));
    }
    // Its last word: how many checks fail, and which.
    return absl::FailedPreconditionError(
        absl::StripTrailingAsciiWhitespace(outcome.err));
  }

 private:
  absl::Status ShowNetwork(Console& console) {
    ASSIGN_OR_RETURN(const auto client, cluster_.Connect(console));
    ASSIGN_OR_RETURN(const ListWorkersResponse list, client->Workers());
    console.out << (json_ ? MessageJsonText(list.topology())
                          : NetworkView(list.topology()))
                << std::flush;
    return absl::OkStatus();
  }

  bool json_ = false;
  bool network_ = false;
  ClusterFlags cluster_;
  int64_t port_ = 0;
  std::string state_;
  std::string nvme_;
};

}  // namespace

std::unique_ptr<Command> MakeDoctor() { return std::make_unique<Doctor>(); }

}  // namespace troupe
