#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "clients/cli/commands/commands.h"
#include "proto/base/shell_word.h"
#include "proto/base/status.h"
#include "proto/trust/cluster_trust.h"
#include "proto/trust/peer_role.h"

namespace troupe {
namespace {

// No daemon is asked: the folder has the authority.
class ClusterCertificate final : public Command {
 public:
  void Declare(Flags& flags) override {
    flags.RequiredTexts("HOST", hosts_,
                        "Names and addresses of the host it is for");
    flags.Choice("--role", role_, {"worker", "client", "scheduler"},
                 "What its holder is to the others [worker]");
    flags.Texts("--name", names_,
                {.value = "NAME",
                 .text = "A name that a worker with it may have, NAME-* for "
                         "all that begin so [HOST, HOST-*]"});
    flags.Text("--dir", dir_,
               {.value = "DIR",
                .text = "The cluster's folder; made where there is none "
                        "[TROUPE_DIR]"});
    flags.Text(
        "--out", out_,
        {.value = "DIR", .text = "The folder to make [HOST-ROLE, here]"});
  }

  absl::Status Run(Console& console) override {
    if (dir_.empty()) dir_ = console.environment_dir;
    if (dir_.empty()) {
      return absl::InvalidArgumentError(
          "usage: --dir is required (or TROUPE_DIR)");
    }
    ASSIGN_OR_RETURN(const PeerRole role, RoleNamed(role_));
    if (out_.empty()) out_ = absl::StrCat(hosts_[0], "-", role_);
    const absl::Time now = absl::Now();
    // The scheduler's and the clients' here, too, should it be the first time.
    RETURN_IF_ERROR(EnsureClusterTrust(dir_, now));
    RETURN_IF_ERROR(IssueMember(
        dir_,
        {.role = role, .hosts = hosts_, .worker_names = names_, .out = out_},
        now));
    console.out << "made " << out_ << ", by which a " << role_ << " on "
                << absl::StrJoin(hosts_, ", ") << " is known for a year\n"
                << "copy it there, where only that user may read it, and give "
                << "--certificates " << ShellWord(out_) << "\n";
    return absl::OkStatus();
  }

 private:
  std::vector<std::string> hosts_;
  std::vector<std::string> names_;
  std::string role_ = "worker";
  std::string dir_;
  std::string out_;
};

}  // namespace

std::unique_ptr<Command> MakeClusterCertificate() {
  return std::make_unique<ClusterCertificate>();
}

}  // namespace troupe
