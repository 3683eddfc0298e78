#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "clients/cli/choice_evaluation.h"
#include "clients/cli/choice_scores.h"
#include "clients/cli/cluster_flags.h"
#include "clients/cli/commands/commands.h"
#include "clients/cli/evaluation_job.h"
#include "clients/cli/interrupt.h"
#include "clients/cli/job_epochs.h"
#include "clients/cli/newest_checkpoint.h"
#include "clients/cli/root_flags.h"
#include "clients/cli/submit_job.h"
#include "clients/cli/view/format.h"
#include "clients/cli/view/watch_view.h"
#include "clients/cli/watch_job.h"
#include "clients/cli/write_file.h"
#include "proto/base/status.h"
#include "storage/disk/roots.h"

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

nlohmann::ordered_json JsonOf(const ChoiceRate& rate) {
  nlohmann::ordered_json json = {{"value", rate.value}, {"stderr", nullptr}};
  if (rate.error.has_value()) json["stderr"] = *rate.error;
  return json;
}

struct ChoiceSummary {
  int64_t job = 0;
  int64_t items = 0;
  int64_t rows = 0;
  int64_t sequence_length = 0;
};

std::string JsonText(const ChoiceSummary& summary, const ChoiceScores& scores) {
  const nlohmann::ordered_json json = {
      {"job", summary.job},
      {"items", summary.items},
      {"acc", JsonOf(scores.acc)},
      {"acc_norm", JsonOf(scores.acc_norm)},
      {"acc_bytes", JsonOf(scores.acc_bytes)},
      {"windows", summary.rows},
      {"sequence_length", summary.sequence_length}};
  return json.dump(2) + "\n";
}

std::string RateText(const char* name, const ChoiceRate& rate) {
  const std::string error =
      rate.error.has_value() ? absl::StrCat(" +- ", NumberText(*rate.error, 4))
                             : "";
  return absl::StrCat(name, " ", NumberText(rate.value, 4), error);
}

std::string SummaryText(const ChoiceSummary& summary,
                        const ChoiceScores& scores) {
  return absl::StrCat(
      RateText("acc", scores.acc), ", ", RateText("acc_norm", scores.acc_norm),
      ", ", RateText("acc_bytes", scores.acc_bytes), " on ",
      GroupedText(summary.items), summary.items == 1 ? " item (" : " items (",
      GroupedText(summary.rows), " choices in windows of ",
      GroupedText(summary.sequence_length), ")\n");
}

class Eval final : public Command {
 public:
  void Declare(Flags& flags) override {
    flags.Required("MODEL", options_.model,
                   "A Hugging Face directory, a checkpoint, or a folder of "
                   "checkpoints, whose newest is meant; or a job (number, name "
                   "or latest), whose newest checkpoint is meant");
    flags.Text("--tokens", options_.tokens,
               {.value = "FILE",
                .text = "The token file, made by `troupe data prepare`"});
    flags.Text("--choices", choices_.file,
               {.value = "FILE",
                .text = "Or questions, of which the model is to find the right "
                        "answer: JSON lines with \"prompt\", \"choices\" and "
                        "\"answer\", the place of the right one from 0"});
    flags.Text("--delimiter", choices_.delimiter,
               {.value = "TEXT",
                .text = "Of --choices: between prompt and choice [nothing]"});
    flags.Text("--tokenizer", choices_.tokenizer.tokenizer,
               {.value = "NAME",
                .text = "Of --choices: bytes, a tokenizer.json, a "
                        "tokenizer.model, or a folder with one [the model's]"});
    flags.Switch("--bos", bos_,
                 "Of --choices: the BOS token comes before each prompt [as the "
                 "tokenizer's files say]");
    flags.Switch("--no-bos", no_bos_, "Of --choices: it does not");
    flags.Text("--out", out_,
               {.value = "FILE",
                .text = "Of --choices: write the log-likelihoods, a line of "
                        "JSON for each item"});
    flags.Text("--work", choices_.work,
               {.value = "DIR",
                .text = "Of --choices: where their tokens are while the job "
                        "runs; workers and this command must see it, below a "
                        "root of theirs as NAME:path [beside the file]"});
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
    RETURN_IF_ERROR(CheckFlags());
    Interrupt interrupt;
    ASSIGN_OR_RETURN(const auto roots, roots_.Install());
    ASSIGN_OR_RETURN(auto client, cluster_.Connect(console));
    RETURN_IF_ERROR(FindModel(*client));
    ASSIGN_OR_RETURN(const ListWorkersResponse workers, client->Workers());
    options_.workers = std::max(1, IdleWorkers(workers));
    // What a program reads is the result alone.
    Console progress = {.out = json_ ? console.err : console.out,
                        .err = console.err,
                        .terminal = console.terminal && !json_,
                        .width = console.width,
                        .environment_dir = console.environment_dir};
    return choices_.file.empty()
               ? RunTokens(std::move(client), interrupt, progress, console)
               : RunChoices(std::move(client), interrupt, progress, console);
  }

 private:
  absl::Status CheckFlags() {
    if (choices_.file.empty() == options_.tokens.empty()) {
      return absl::InvalidArgumentError(
          "usage: give either --tokens FILE or --choices FILE");
    }
    if (bos_ && no_bos_) {
      return absl::InvalidArgumentError(
          "usage: --bos and --no-bos contradict each other; give one");
    }
    const bool of_choices =
        bos_ || no_bos_ || !out_.empty() || !choices_.work.empty() ||
        !choices_.delimiter.empty() || !choices_.tokenizer.tokenizer.empty();
    if (choices_.file.empty() && of_choices) {
      return absl::InvalidArgumentError(
          "usage: --delimiter, --tokenizer, --bos, --no-bos, --out and --work "
          "are for --choices");
    }
    if (bos_ || no_bos_) choices_.tokenizer.adds_bos = bos_;
    return absl::OkStatus();
  }

  // The questions are for this command alone.
  absl::Status CheckChoicesPath() const {
    std::error_code error;
    const absl::string_view root = RootName(choices_.file);
    if (root.empty() || std::filesystem::exists(choices_.file, error)) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "--choices: ", choices_.file, " is below a root of the workers, and ",
        "the questions are read by this command; give their path on this "
        "machine, and by --work ",
        root, ":PATH a folder below the root"));
  }

  // What is no path may be a job.
  absl::Status FindModel(Client& client) {
    std::error_code error;
    const std::string given = options_.model;
    const bool may_be_job = given.find('/') == std::string::npos &&
                            RootName(given).empty() &&
                            !std::filesystem::exists(given, error);
    if (!may_be_job) return absl::OkStatus();
    absl::StatusOr<std::string> checkpoint = NewestCheckpointOf(client, given);
    if (!checkpoint.ok()) {
      return Annotate(
          checkpoint.status(),
          absl::StrCat(given, ": there is no such directory, and as a job"));
    }
    options_.model = *std::move(checkpoint);
    return absl::OkStatus();
  }

  absl::Status RunTokens(std::unique_ptr<Client> client, Interrupt& interrupt,
                         Console& progress, Console& console) {
    ASSIGN_OR_RETURN(const JobFile job, MakeEvaluationJob(options_));
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

  absl::Status RunChoices(std::unique_ptr<Client> client, Interrupt& interrupt,
                          Console& progress, Console& console) {
    RETURN_IF_ERROR(CheckReadableHere("MODEL", options_.model));
    RETURN_IF_ERROR(CheckReadableHere("--work", choices_.work));
    RETURN_IF_ERROR(CheckChoicesPath());
    ASSIGN_OR_RETURN(choices_.tokenizer.model, NewestModel(options_.model));
    ASSIGN_OR_RETURN(const auto choices,
                     ChoiceEvaluation::Read(choices_, interrupt, progress));
    options_.model = choices_.tokenizer.model;
    options_.tokens = choices->rows_path();
    options_.rows = choices->rows();
    ASSIGN_OR_RETURN(const JobFile job, MakeEvaluationJob(options_));
    RETURN_IF_ERROR(choices->Write(job.spec, interrupt, progress));
    ASSIGN_OR_RETURN(const int64_t id, SubmitJob(job, *client, interrupt,
                                                 cluster_.Words(), progress));
    bool has_ended = false;
    const auto on_update = [&](const WatchJobResponse& update) {
      choices->Add(update);
      has_ended = HasEnded(update.status().state());
    };
    const absl::Status watched = WatchJob(
        std::move(client), [&] { return cluster_.Connect(console); },
        {.from = {.id = id},
         .on_update = on_update,
         .goes_on = false,
         .cluster_words = cluster_.Words(),
         .patience = patience_.patience()},
        interrupt, progress);
    // Nobody else could read what its losses are of.
    if (!watched.ok() && !has_ended && !CancelJob(id, console)) {
      choices->LeaveRows();
      console.err << "troupe: job " << id << " may still read "
                  << choices->rows_path()
                  << ", which is left there; remove it when the job has "
                     "ended, and run this command again for the scores\n";
    }
    RETURN_IF_ERROR(choices->NameChoice(watched));
    ASSIGN_OR_RETURN(const ChoiceScores scores, choices->Score());
    const ChoiceSummary summary = {
        .job = id,
        .items = static_cast<int64_t>(choices->set().items.size()),
        .rows = choices->set().rows,
        .sequence_length = job.spec.training().sequence_length()};
    console.out << (json_ ? JsonText(summary, scores)
                          : SummaryText(summary, scores));
    if (out_.empty()) return absl::OkStatus();
    return WriteFile(
        {.path = out_,
         .content = ChoiceResultLines(choices->set().items, scores)});
  }

  // False: that it was cancelled is not known.
  bool CancelJob(int64_t id, Console& console) const {
    const auto client = cluster_.Connect(console);
    const absl::Status cancelled =
        client.ok() ? (*client)->Cancel(id).status() : client.status();
    if (cancelled.ok()) {
      console.err << "troupe: job " << id << " is cancelled\n";
    } else {
      console.err << "troupe: job " << id
                  << " could not be cancelled: " << cancelled.message()
                  << "; troupe cancel " << id << cluster_.Words() << "\n";
    }
    return cancelled.ok();
  }

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
  ChoiceEvaluationOptions choices_;
  bool bos_ = false;
  bool no_bos_ = false;
  std::string out_;
  bool json_ = false;
  RootFlags roots_;
  PatienceFlag patience_;
  ClusterFlags cluster_;
};

}  // namespace

std::unique_ptr<Command> MakeEval() { return std::make_unique<Eval>(); }

}  // namespace troupe
