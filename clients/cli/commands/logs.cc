#include <ostream>
#include <string>
#include <utility>

#include "clients/cli/cluster_flags.h"
#include "clients/cli/commands/commands.h"
#include "clients/cli/interrupt.h"
#include "clients/cli/view/format.h"
#include "clients/cli/watch_job.h"
#include "proto/base/status.h"

namespace troupe {
namespace {

class Logs final : public Command {
 public:
  void Declare(Flags& flags) override {
    flags.Required("JOB", job_, kJobHelp);
    flags.Switch("--follow,-f", follow_, "Go on until the job ends");
    patience_.Declare(flags);
    cluster_.Declare(flags);
  }

  absl::Status Run(Console& console) override {
    Interrupt interrupt;
    ASSIGN_OR_RETURN(auto client, cluster_.Connect(console));
    ASSIGN_OR_RETURN(const int64_t id, FindJob(*client, job_));
    if (follow_) {
      return WatchJob(
          std::move(client), [&] { return cluster_.Connect(console); },
          {.from = {.id = id},
           .steps = false,
           .cluster_words = cluster_.Words(),
           .patience = patience_.patience()},
          interrupt, console);
    }
    ASSIGN_OR_RETURN(const JobDescription job, client->Describe(id));
    for (const JobEvent& event : job.events()) {
      console.out << DateText(event.unix_ms()) << "  " << event.text() << "\n";
    }
    return absl::OkStatus();
  }

 private:
  std::string job_;
  bool follow_ = false;
  PatienceFlag patience_;
  ClusterFlags cluster_;
};

}  // namespace

std::unique_ptr<Command> MakeLogs() { return std::make_unique<Logs>(); }

}  // namespace troupe
