#include <ostream>

#include "absl/strings/str_cat.h"
#include "clients/cli/cluster_flags.h"
#include "clients/cli/commands/commands.h"
#include "clients/cli/view/format.h"
#include "clients/cli/view/message_json.h"
#include "clients/cli/view/unsaved_text.h"
#include "proto/base/status.h"

namespace troupe {
namespace {

class Jobs final : public Command {
 public:
  void Declare(Flags& flags) override {
    flags.Switch("--json", json_, "Print JSON");
    cluster_.Declare(flags);
  }

  absl::Status Run(Console& console) override {
    ASSIGN_OR_RETURN(const auto client, cluster_.Connect(console));
    ASSIGN_OR_RETURN(const ListJobsResponse list, client->ListJobs());
    if (json_) {
      console.out << MessageJsonText(list);
      return absl::OkStatus();
    }
    Table table({"ID>", "NAME", "STATE", "STEPS>", "LOSS>", "TOK/S>",
                 "RESTARTS>", "SUBMITTED", "REASON"});
    for (const JobStatus& job : list.jobs()) {
      const bool has_step = job.last_step().step() > 0;
      const StepRecord& step = job.last_step();
      table.Add({absl::StrCat(job.id()), job.name(), JobState_Name(job.state()),
                 absl::StrCat(job.steps_done(), "/", job.steps_total()),
                 has_step ? NumberText(step.loss(), 4) : "-",
                 has_step ? CountText(step.tokens_per_second()) : "-",
                 job.restarts() > 0 ? absl::StrCat(job.restarts()) : "-",
                 DateText(job.submitted_unix_ms()), job.reason()});
    }
    console.out << table.Text();
    for (const JobStatus& job : list.jobs()) {
      if (job.unsaved().empty()) continue;
      console.out << RedText(absl::StrCat("job ", job.id(), " (", job.name(),
                                          ") ", UnsavedText(job)),
                             console.terminal)
                  << "\n";
    }
    return absl::OkStatus();
  }

 private:
  bool json_ = false;
  ClusterFlags cluster_;
};

}  // namespace

std::unique_ptr<Command> MakeJobs() { return std::make_unique<Jobs>(); }

}  // namespace troupe
