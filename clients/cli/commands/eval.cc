#include <algorithm>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "clients/cli/cluster_flags.h"
#include "clients/cli/commands/commands.h"
#include "clients/cli/evaluation_job.h"
#include "clients/cli/interrupt.h"
#include "clients/cli/job_epochs.h"
#include "clients/cli/root_flags.h"
#include "clients/cli/submit_job.h"
#include "clients/cli/view/format.h"
#include "clients/cli/watch_job.h"
#include "proto/base/status.h"

namespace troupe {
namespace {

// That may be given a rank now.
int IdleWorkers(const ListWorkersResponse& workers) {
  return static_cast<int>(
      std::count_if(workers.workers().begin(), workers.workers().end(),
                    [](const WorkerStatus& worker) {
                      return worker.state() == WorkerStatus::IDLE &&
                             worker.set_aside().empty();
                    }));
}

struct Measured {
  int64_t job = 0;
  double loss = 0;  // nats a token
  int64_t tokens = 0;
  int64_t windows = 0;
  int64_t sequence_length = 0;

  double perplexity() const { return std::exp(loss); }
};

std::string JsonText(const Measured& measured) {
  const nlohmann::ordered_json json = {
      {"job", measured.job},
      {"loss", measured.loss},
      {"perplexity", measured.perplexity()},
      {"tokens", measured.tokens},
      {"windows", measured.windows},
      {"sequence_length", measured.sequence_length}};
  return json.dump(2) + "\n";
}

std::string SummaryText(const Measured& measured) {
  return absl::StrCat("loss ", NumberText(measured.loss, 6), ", perplexity ",
                      NumberText(measured.perplexity(), 4), " on ",
                      GroupedText(measured.tokens), " tokens (",
                      GroupedText(measured.windows), " windows of ",
                      GroupedText(measured.sequence_length), ")\n");
}

class Eval final : public Command {
 public:
  void Declare(Flags& flags) override {
    flags.Required("MODEL", options_.model,
                   "A Hugging Face directory, a checkpoint, or a folder of "
                   "checkpoints, whose newest is meant");
    flags.Text("--tokens!", options_.tokens,
               {.value = "FILE",
                .text = "The token file, made by `troupe data prepare`"});
    flags.Texts("--set", options_.overrides,
                {.value = "PATH=VALUE",
                 .text = "Set a field of the job, as in parallelism.tensor=2; "
                         "repeatable"});
    flags.Switch("--json", json_, "Write the result as JSON");
    roots_.Declare(flags);
    patience_.Declare(flags);
    cluster_.Declare(flags);
  }

  absl::Status Run(Console& console) override {
    Interrupt interrupt;
    ASSIGN_OR_RETURN(const auto roots, roots_.Install());
    ASSIGN_OR_RETURN(auto client, cluster_.Connect(console));
    ASSIGN_OR_RETURN(const ListWorkersResponse workers, client->Workers());
    options_.workers = std::max(1, IdleWorkers(workers));
    ASSIGN_OR_RETURN(const JobFile job, MakeEvaluationJob(options_));
    // What a program reads is the result alone.
    Console progress = {.out = json_ ? console.err : console.out,
                        .err = console.err,
                        .terminal = console.terminal && !json_,
                        .width = console.width,
                        .environment_dir = console.environment_dir};
    ASSIGN_OR_RETURN(
        const int64_t id,
        SubmitJob(job, *client, interrupt, cluster_.Words(), progress));
    RETURN_IF_ERROR(WatchJob(
        std::move(client), [&] { return cluster_.Connect(console); },
        {.from = {.id = id},
         .cluster_words = cluster_.Words(),
         .patience = patience_.patience()},
        interrupt, progress));
    ASSIGN_OR_RETURN(const Measured measured, Result(id, job.spec, console));
    console.out << (json_ ? JsonText(measured) : SummaryText(measured));
    return absl::OkStatus();
  }

 private:
  absl::StatusOr<Measured> Result(int64_t id, const JobSpec& job,
                                  const Console& console) const {
    ASSIGN_OR_RETURN(const auto client, cluster_.Connect(console));
    ASSIGN_OR_RETURN(const JobDescription done, client->Describe(id));
    ASSIGN_OR_RETURN(const int64_t windows, EvaluationWindows(job));
    const StepRecord& last = done.status().last_step();
    return Measured{.job = id,
                    .loss = last.loss(),
                    .tokens = last.counted_tokens(),
                    .windows = windows,
                    .sequence_length = job.training().sequence_length()};
  }

  EvaluationOptions options_;
  bool json_ = false;
  RootFlags roots_;
  PatienceFlag patience_;
  ClusterFlags cluster_;
};

}  // namespace

std::unique_ptr<Command> MakeEval() { return std::make_unique<Eval>(); }

}  // namespace troupe
