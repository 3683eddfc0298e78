// The questions of `troupe eval --choices`, from their file to the scores. In
// between an ordinary evaluation job (evaluation_job.h) measures the loss of
// each row: of a prompt with one of its choices.
//
//   ASSIGN_OR_RETURN(auto choices, ChoiceEvaluation::Read(options, ...));
//   ... make the job, with choices->rows() and choices->rows_path() ...
//   RETURN_IF_ERROR(choices->Write(job, ...));      // then submit it
//   ... choices->Add(update) for each update of the job ...
//   ASSIGN_OR_RETURN(ChoiceScores scores, choices->Score());
#ifndef TROUPE_CLIENTS_CLI_CHOICE_EVALUATION_H_
#define TROUPE_CLIENTS_CLI_CHOICE_EVALUATION_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "clients/cli/choice_scores.h"
#include "clients/cli/command.h"
#include "clients/cli/evaluation_job.h"
#include "clients/cli/interrupt.h"
#include "clients/cli/model_tokenizer.h"
#include "proto/job.pb.h"
#include "proto/scheduler.pb.h"
#include "storage/corpus/choice_file.h"

namespace troupe {

struct ChoiceEvaluationOptions {
  std::string file;
  ModelTokenizerOptions tokenizer;
  std::string delimiter;  // between prompt and choice
  // Where the token file of the rows is while the job runs, which all workers
  // must see: a folder, or one below a root. Empty: beside `file`.
  std::string work;
};

class ChoiceEvaluation {
 public:
  // Reads and checks all of the file. Says on `console.err` what may be a
  // mistake in it. Errors of OpenModelTokenizer and ReadChoices; Cancelled
  // after an interrupt.
  static absl::StatusOr<std::unique_ptr<ChoiceEvaluation>> Read(
      const ChoiceEvaluationOptions& options, Interrupt& interrupt,
      Console& console);
  // Removes the token file, unless LeaveRows was called.
  ~ChoiceEvaluation();
  ChoiceEvaluation(const ChoiceEvaluation&) = delete;
  ChoiceEvaluation& operator=(const ChoiceEvaluation&) = delete;

  EvaluationOptions::Rows rows() const;
  const std::string& rows_path() const { return rows_path_; }

  // Writes the token file for a job that evaluates it.
  absl::Status Write(const JobSpec& job, Interrupt& interrupt,
                     Console& console);
  // Some may still read it.
  void LeaveRows() { leaves_rows_ = true; }
  void Add(const WatchJobResponse& update);
  absl::StatusOr<ChoiceScores> Score() const;
  // Where the error of the job names a window, also the choice that it is.
  absl::Status NameChoice(const absl::Status& failed) const;

  const ChoiceSet& set() const { return set_; }

 private:
  ChoiceEvaluation() = default;
  absl::StatusOr<ChoiceSet> ReadAll(Interrupt& interrupt,
                                    Console& console) const;

  CorpusFile file_;
  ModelTokenizer tokenizer_;
  std::optional<ChoiceEncoder> encoder_;
  ChoiceSet set_;
  std::string rows_path_;
  std::optional<RowLosses> losses_;  // once it is written
  bool leaves_rows_ = false;
};

}  // namespace troupe

#endif  // TROUPE_CLIENTS_CLI_CHOICE_EVALUATION_H_
