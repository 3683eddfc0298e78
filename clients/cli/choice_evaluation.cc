#include "clients/cli/choice_evaluation.h"

#include <filesystem>
#include <ostream>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "clients/cli/progress.h"
#include "clients/cli/view/format.h"
#include "proto/base/random_id.h"
#include "proto/base/status.h"
#include "proto/plan/plan_limits.h"
#include "proto/plan/window_words.h"
#include "storage/disk/directory.h"
#include "storage/disk/roots.h"

namespace troupe {
namespace {

namespace fs = std::filesystem;

// A name that no other evaluation of the file has.
std::string RowsPath(const ChoiceEvaluationOptions& options) {
  const fs::path file(options.file);
  const std::string name =
      absl::StrCat(file.filename().string(), ".", RandomId(), ".tokens");
  if (!RootName(options.work).empty()) {
    return absl::StrCat(options.work, "/", name);
  }
  std::error_code error;
  const fs::path folder = options.work.empty()
                              ? fs::absolute(file, error).parent_path()
                              : fs::absolute(options.work, error);
  return (folder / name).lexically_normal().string();
}

ChoiceEncoderOptions EncoderOptions(const ModelTokenizer& opened,
                                    const std::string& delimiter) {
  ChoiceEncoderOptions options = {.in_place_of_prompt = opened.bos.tokens,
                                  .delimiter = delimiter};
  if (opened.bos.adds) options.bos = opened.bos.tokens;
  const std::optional<int32_t> eos = opened.tokenizer->eos_id();
  if (options.in_place_of_prompt.empty() && eos.has_value()) {
    options.in_place_of_prompt = {*eos};
  }
  return options;
}

// What is no error, and yet seldom meant.
void SayDoubts(const ChoiceSet& set, const std::string& file,
               Console& console) {
  if (set.with_duplicates > 0) {
    console.err << "troupe: " << file << ": "
                << GroupedText(set.with_duplicates)
                << (set.with_duplicates == 1 ? " item has" : " items have")
                << " a choice twice; of equal choices the first is taken\n";
  }
  if (set.joins_words) {
    console.err << "troupe: " << file
                << ": no space stands between the prompts and their choices, "
                   "which are read as one word; begin the choices with a "
                   "space, or give --delimiter ' '\n";
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<ChoiceEvaluation>> ChoiceEvaluation::Read(
    const ChoiceEvaluationOptions& options, Interrupt& interrupt,
    Console& console) {
  std::unique_ptr<ChoiceEvaluation> choices(new ChoiceEvaluation);
  ASSIGN_OR_RETURN(choices->file_, FindChoiceFile(options.file));
  ASSIGN_OR_RETURN(choices->tokenizer_, OpenModelTokenizer(options.tokenizer));
  choices->encoder_.emplace(
      *choices->tokenizer_.tokenizer,
      EncoderOptions(choices->tokenizer_, options.delimiter));
  ASSIGN_OR_RETURN(choices->set_, choices->ReadAll(interrupt, console));
  choices->rows_path_ = RowsPath(options);
  SayDoubts(choices->set_, options.file, console);
  return choices;
}

// The line of its progress has ended when it returns.
absl::StatusOr<ChoiceSet> ChoiceEvaluation::ReadAll(Interrupt& interrupt,
                                                    Console& console) const {
  Progress progress(console, interrupt, "reading: ");
  const auto bytes = static_cast<int64_t>(file_.size);
  return ReadChoices(
      file_, *encoder_,
      [&](uint64_t done) {
        return progress.Show(static_cast<int64_t>(done), bytes).ok();
      },
      kSequenceLossesMax);
}

ChoiceEvaluation::~ChoiceEvaluation() {
  if (!losses_.has_value() || leaves_rows_) return;
  RemoveTree(rows_path_).IgnoreError();
}

EvaluationOptions::Rows ChoiceEvaluation::rows() const {
  return {.count = set_.rows,
          .longest = set_.longest.tokens,
          .longest_is = absl::StrCat(file_.path, ":", set_.longest.line,
                                     ": choices[", set_.longest.choice, "]")};
}

absl::Status ChoiceEvaluation::Write(const JobSpec& job, Interrupt& interrupt,
                                     Console& console) {
  losses_.emplace(set_.rows, job.training().global_batch_size());
  Progress progress(console, interrupt, "writing: ");
  const auto bytes = static_cast<int64_t>(file_.size);
  const absl::Status written = WriteChoiceRows(
      file_, *encoder_,
      {.path = rows_path_,
       .sequence_length =
           static_cast<uint64_t>(job.training().sequence_length())},
      [&](uint64_t done) {
        return progress.Show(static_cast<int64_t>(done), bytes).ok();
      });
  if (!absl::IsPermissionDenied(written) && !absl::IsNotFound(written)) {
    return written;
  }
  return absl::Status(
      written.code(),
      absl::StrCat(written.message(),
                   "; give by --work a folder that you may write to and that "
                   "all workers see"));
}

void ChoiceEvaluation::Add(const WatchJobResponse& update) {
  for (const StepRecord& step : update.steps()) losses_->Add(step);
}

absl::Status ChoiceEvaluation::NameChoice(const absl::Status& failed) const {
  const absl::optional<int64_t> window = FirstWindowIn(failed.message());
  if (!window.has_value()) return failed;
  int64_t choice = *window;
  for (const ChoiceItem& item : set_.items) {
    const auto choices = static_cast<int64_t>(item.choices.size());
    if (choice < choices) {
      return absl::Status(
          failed.code(),
          absl::StrCat(failed.message(), "; window ", *window, " is ",
                       file_.path, ":", item.line, ": choices[", choice, "]"));
    }
    choice -= choices;
  }
  return failed;
}

absl::StatusOr<ChoiceScores> ChoiceEvaluation::Score() const {
  absl::StatusOr<ChoiceScores> scores =
      ScoreChoices(set_.items, losses_->rows());
  if (scores.ok()) return scores;
  return Annotate(scores.status(), file_.path);
}

}  // namespace troupe
