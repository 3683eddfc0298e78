#include <ostream>
#include <string>

#include "absl/strings/str_cat.h"
#include "clients/cli/cluster_flags.h"
#include "clients/cli/commands/commands.h"
#include "clients/cli/view/watch_view.h"
#include "proto/base/status.h"

namespace troupe {
namespace {

class Cancel final : public Command {
 public:
  void Declare(Flags& flags) override {
    flags.Required("JOB", job_, kJobHelp);
    flags.Switch("--checkpoint", checkpoint_,
                 "finish the step in progress and save it first");
    cluster_.Declare(flags);
  }

  absl::Status Run(Console& console) override {
    ASSIGN_OR_RETURN(const auto client, cluster_.Connect(console));
    ASSIGN_OR_RETURN(const int64_t id, FindJob(*client, job_));
    ASSIGN_OR_RETURN(const JobStatus before, Before(*client, id));
    ASSIGN_OR_RETURN(const JobStatus status, client->Cancel(id, checkpoint_));
    console.out << "job " << id << " (" << status.name() << ") "
                << (HasEnded(before.state()) ? "had ended before: " : "is ")
                << JobState_Name(status.state()) << "\n";
    return absl::OkStatus();
  }

 private:
  static absl::StatusOr<JobStatus> Before(Client& client, int64_t id) {
    ASSIGN_OR_RETURN(const JobDescription job, client.Describe(id));
    return job.status();
  }

  std::string job_;
  bool checkpoint_ = false;
  ClusterFlags cluster_;
};

}  // namespace

std::unique_ptr<Command> MakeCancel() { return std::make_unique<Cancel>(); }

}  // namespace troupe
