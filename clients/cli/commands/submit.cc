#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "clients/cli/cluster_flags.h"
#include "clients/cli/commands/commands.h"
#include "clients/cli/interrupt.h"
#include "clients/cli/load_job.h"
#include "clients/cli/root_flags.h"
#include "clients/cli/submit_job.h"
#include "clients/cli/watch_job.h"
#include "proto/base/status.h"

namespace troupe {
namespace {

class Submit final : public Command {
 public:
  void Declare(Flags& flags) override {
    flags.Required("FILE", file_, "The job file (YAML)");
    flags.Texts("--set", overrides_,
                {.value = "PATH=VALUE",
                 .text = "Set a field, as in optimizer.lr=1e-3; repeatable"});
    flags.Switch("--watch,-w", watch_,
                 "Follow the job; exit with 0 only if it succeeds");
    roots_.Declare(flags);
    patience_.Declare(flags);
    cluster_.Declare(flags);
  }

  absl::Status Run(Console& console) override {
    Interrupt interrupt;
    ASSIGN_OR_RETURN(const auto roots, roots_.Install());
    ASSIGN_OR_RETURN(
        const JobFile job,
        LoadJob(JobUse::kRun, {.path = file_, .overrides = overrides_}));
    ASSIGN_OR_RETURN(auto client, cluster_.Connect(console));
    ASSIGN_OR_RETURN(
        const int64_t id,
        SubmitJob(job, *client, interrupt, cluster_.Words(), console));
    if (!watch_) {
      console.out << "follow it with: troupe watch " << id << cluster_.Words()
                  << "\n";
      return absl::OkStatus();
    }
    return WatchJob(
        std::move(client), [&] { return cluster_.Connect(console); },
        {.from = {.id = id},
         .cluster_words = cluster_.Words(),
         .patience = patience_.patience()},
        interrupt, console);
  }

 private:
  std::string file_;
  std::vector<std::string> overrides_;
  RootFlags roots_;
  bool watch_ = false;
  PatienceFlag patience_;
  ClusterFlags cluster_;
};

}  // namespace

std::unique_ptr<Command> MakeSubmit() { return std::make_unique<Submit>(); }

}  // namespace troupe
