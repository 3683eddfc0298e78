#include <cstdint>
#include <ostream>
#include <string>

#include "absl/strings/match.h"
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
    flags.Optional("JOB", job_, kJobHelp);
    flags.Switch("--checkpoint", checkpoint_,
                 "Finish the step in progress and save it first");
    flags.Integer("--text", text_, {1, INT64_MAX},
                  {.value = "N",
                   .text = "Or a text that a worker writes, by the number that "
                           "troupe workers shows"});
    cluster_.Declare(flags);
  }

  absl::Status Run(Console& console) override {
    if (job_.empty() == (text_ == 0) || (text_ != 0 && checkpoint_)) {
      return absl::InvalidArgumentError(
          "usage: give either a JOB, with or without --checkpoint, or --text "
          "N");
    }
    ASSIGN_OR_RETURN(const auto client, cluster_.Connect(console));
    if (text_ != 0) {
      ASSIGN_OR_RETURN(const std::string worker, client->CancelText(text_));
      console.out << "text " << text_ << " is ended; " << worker
                  << (absl::StrContains(worker, ',') ? " are" : " is")
                  << " told to stop\n";
      return absl::OkStatus();
    }
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
  int64_t text_ = 0;
  ClusterFlags cluster_;
};

}  // namespace

std::unique_ptr<Command> MakeCancel() { return std::make_unique<Cancel>(); }

}  // namespace troupe
