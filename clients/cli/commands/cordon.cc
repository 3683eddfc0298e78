#include <ostream>
#include <string>

#include "clients/cli/cluster_flags.h"
#include "clients/cli/commands/commands.h"
#include "proto/base/status.h"

namespace troupe {
namespace {

constexpr char kNameHelp[] = "The worker's name, as troupe workers shows it";

absl::StatusOr<WorkerStatus> Send(const CordonWorkerRequest& request,
                                  ClusterFlags& cluster, Console& console) {
  ASSIGN_OR_RETURN(const auto client, cluster.Connect(console));
  return client->CordonWorker(request);
}

class Cordon final : public Command {
 public:
  void Declare(Flags& flags) override {
    flags.Required("NAME", name_, kNameHelp);
    flags.Text("--why", why_,
               {.text = "The reason, which troupe workers and the status page "
                        "show"});
    cluster_.Declare(flags);
  }

  absl::Status Run(Console& console) override {
    CordonWorkerRequest request;
    request.set_name(name_);
    request.set_cordon(true);
    request.set_why(why_);
    ASSIGN_OR_RETURN(const WorkerStatus worker,
                     Send(request, cluster_, console));
    console.out << name_
                << " gets no more ranks, until troupe workers uncordon "
                << name_ << "\n";
    if (worker.job() != 0) {
      console.out << "rank " << worker.rank() << " of job " << worker.job()
                  << " goes on there\n";
    }
    return absl::OkStatus();
  }

 private:
  std::string name_;
  std::string why_;
  ClusterFlags cluster_;
};

class Uncordon final : public Command {
 public:
  void Declare(Flags& flags) override {
    flags.Required("NAME", name_, kNameHelp);
    cluster_.Declare(flags);
  }

  absl::Status Run(Console& console) override {
    CordonWorkerRequest request;
    request.set_name(name_);
    ASSIGN_OR_RETURN(const WorkerStatus worker,
                     Send(request, cluster_, console));
    if (worker.set_aside().empty()) {
      console.out << name_ << " is in service\n";
    } else {
      console.out << name_ << " is still set aside: " << worker.set_aside()
                  << "\n";
    }
    return absl::OkStatus();
  }

 private:
  std::string name_;
  ClusterFlags cluster_;
};

}  // namespace

std::unique_ptr<Command> MakeCordon() { return std::make_unique<Cordon>(); }
std::unique_ptr<Command> MakeUncordon() { return std::make_unique<Uncordon>(); }

}  // namespace troupe
