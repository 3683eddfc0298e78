#include <string>
#include <utility>

#include "clients/cli/cluster_flags.h"
#include "clients/cli/commands/commands.h"
#include "clients/cli/interrupt.h"
#include "clients/cli/watch_job.h"
#include "proto/base/status.h"

namespace troupe {
namespace {

class Watch final : public Command {
 public:
  void Declare(Flags& flags) override {
    flags.Required("JOB", job_, kJobHelp);
    patience_.Declare(flags);
    cluster_.Declare(flags);
  }

  absl::Status Run(Console& console) override {
    Interrupt interrupt;
    ASSIGN_OR_RETURN(auto client, cluster_.Connect(console));
    ASSIGN_OR_RETURN(const int64_t id, FindJob(*client, job_));
    return WatchJob(
        std::move(client), [&] { return cluster_.Connect(console); },
        {.from = {.id = id},
         .cluster_words = cluster_.Words(),
         .patience = patience_.patience()},
        interrupt, console);
  }

 private:
  std::string job_;
  PatienceFlag patience_;
  ClusterFlags cluster_;
};

}  // namespace

std::unique_ptr<Command> MakeWatch() { return std::make_unique<Watch>(); }

}  // namespace troupe
