// How often a model finds the right choice, by the likelihoods that an
// evaluation has measured. Three measures, as lm-evaluation-harness has them:
//
//   acc        the choice with the largest log-likelihood
//   acc_norm   ... for each character of the choice
//   acc_bytes  ... for each of its bytes in UTF-8
//
// Of choices that are equally likely the first is meant. The standard error is
// that of the mean of a sample, sqrt(p (1 - p) / (n - 1)).
#ifndef TROUPE_CLIENTS_CLI_CHOICE_SCORES_H_
#define TROUPE_CLIENTS_CLI_CHOICE_SCORES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "proto/status.pb.h"
#include "storage/corpus/choice_file.h"

namespace troupe {

// The loss of each row, by its place, out of the records of a job's steps. Each
// step may come several times, in any order.
class RowLosses {
 public:
  // `batch`: sequences of a step.
  RowLosses(int64_t rows, int64_t batch);

  void Add(const StepRecord& step);

  struct Row {
    double loss = 0;     // nats, over the choice's tokens
    int32_t tokens = 0;  // 0: not known yet
  };
  const std::vector<Row>& rows() const { return rows_; }

 private:
  const int64_t batch_;
  std::vector<Row> rows_;
};

struct ChoiceRate {
  double value = 0;
  absl::optional<double> error;  // none of a single item
};

struct ChoiceResult {
  std::vector<double> log_likelihoods;  // by choice
  int by_sum = 0;                       // the choice of each measure
  int by_character = 0;
  int by_byte = 0;
};

struct ChoiceScores {
  ChoiceRate acc;
  ChoiceRate acc_norm;
  ChoiceRate acc_bytes;
  std::vector<ChoiceResult> results;  // by item
};

// Unavailable, with numbers, where the loss of a row is missing, or is of
// another number of tokens than the row has; FailedPrecondition, with the line,
// where one is not finite. REQUIRES items, with as many choices as rows.
absl::StatusOr<ChoiceScores> ScoreChoices(
    const std::vector<ChoiceItem>& items,
    const std::vector<RowLosses::Row>& rows);

// A line of JSON for each item.
std::string ChoiceResultLines(const std::vector<ChoiceItem>& items,
                              const ChoiceScores& scores);

}  // namespace troupe

#endif  // TROUPE_CLIENTS_CLI_CHOICE_SCORES_H_
