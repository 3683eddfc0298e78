#include <ostream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "clients/cli/cluster_flags.h"
#include "clients/cli/commands/commands.h"
#include "clients/cli/view/format.h"
#include "clients/cli/view/message_json.h"
#include "clients/cli/view/plan_view.h"
#include "clients/cli/view/step_line.h"
#include "clients/cli/view/unsaved_text.h"
#include "proto/base/status.h"
#include "proto/plan/machine_pace.h"
#include "proto/plan/memory.h"
#include "proto/plan/tier_traffic.h"

namespace troupe {
namespace {

void PrintStatus(const JobStatus& status, bool terminal, std::ostream& out) {
  out << "job " << status.id() << "  " << status.name() << "\n"
      << "  state      " << JobState_Name(status.state())
      << (status.reason().empty() ? "" : ": ") << status.reason() << "\n"
      << (status.unsaved().empty()
              ? ""
              : RedText(absl::StrCat("  ", UnsavedText(status)), terminal) +
                    "\n")
      << "  steps      " << status.steps_done() << "/" << status.steps_total()
      << "\n"
      << "  submitted  " << DateText(status.submitted_unix_ms())
      << (status.submitted_by().empty()
              ? ""
              : absl::StrCat(" by ", status.submitted_by()))
      << "\n"
      << "  started    " << DateText(status.started_unix_ms()) << "\n"
      << "  finished   " << DateText(status.finished_unix_ms()) << "\n"
      << "  workers    " << absl::StrJoin(status.workers(), ", ") << "\n";
  if (status.last_step().has_machine()) {
    out << "  machine    " << PaceText(status.last_step().machine())
        << ", in step " << status.last_step().step() << "\n";
  }
  const StepRecord& last = status.last_step();
  if (last.loss_scale() > 0) {
    out << "  loss scale " << absl::StrFormat("%g", last.loss_scale())
        << ", steps skipped as gradients overflowed: " << last.skipped_steps()
        << "\n";
  }
  if (!status.resumed_from().empty()) {
    out << "  resumed    " << status.resumed_from() << "\n";
  }
  for (const CheckpointRecord& checkpoint : status.checkpoints()) {
    out << "  checkpoint of step " << checkpoint.step() << "  "
        << checkpoint.path() << "  " << BytesText(checkpoint.bytes()) << " in "
        << SecondsText(checkpoint.seconds()) << "\n";
  }
}

// How long the last step waited for each tier of memory, beside what was
// predicted.
void PrintWaits(const JobDescription& job, std::ostream& out) {
  const StepRecord& last = job.status().last_step();
  const auto predicted = PredictedTraffic(job.plan().prediction());
  for (const TierTraffic& tier : last.tiers()) {
    out << absl::StrFormat("  %-10s", TierText(tier.tier())) << " waited "
        << SecondsText(tier.waited_seconds()) << " in step " << last.step();
    for (const TierTraffic& of : predicted) {
      if (of.tier() != tier.tier()) continue;
      out << ", predicted " << SecondsText(of.waited_seconds());
    }
    out << "\n";
  }
}

void Print(const JobDescription& job, bool terminal, std::ostream& out) {
  PrintStatus(job.status(), terminal, out);
  PrintWaits(job, out);
  if (job.steps_size() > 0) {
    const StepProgress progress{.steps_total = job.status().steps_total()};
    out << "\nlast steps\n";
    for (int i = std::max(0, job.steps_size() - 5); i < job.steps_size(); ++i) {
      out << "  " << StepLine(job.steps(i), progress) << "\n";
    }
  }
  if (job.events_size() > 0) out << "\nevents\n";
  for (const JobEvent& event : job.events()) {
    out << "  " << DateText(event.unix_ms()) << "  " << event.text() << "\n";
  }
  if (job.has_plan()) out << "\n" << PlanText(job.plan());
}

class Describe final : public Command {
 public:
  void Declare(Flags& flags) override {
    flags.Required("JOB", job_, kJobHelp);
    flags.Switch("--json", json_, "Print JSON, every step included");
    cluster_.Declare(flags);
  }

  absl::Status Run(Console& console) override {
    ASSIGN_OR_RETURN(const auto client, cluster_.Connect(console));
    ASSIGN_OR_RETURN(const int64_t id, FindJob(*client, job_));
    ASSIGN_OR_RETURN(const JobDescription job, client->Describe(id));
    if (json_) {
      console.out << DescriptionJson(job);
    } else {
      Print(job, console.terminal, console.out);
    }
    return absl::OkStatus();
  }

 private:
  std::string job_;
  bool json_ = false;
  ClusterFlags cluster_;
};

}  // namespace

std::unique_ptr<Command> MakeDescribe() { return std::make_unique<Describe>(); }

}  // namespace troupe
