#include "clients/cli/choice_scores.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"

namespace troupe {
namespace {

// The first of the largest.
int LargestOf(const std::vector<double>& values) {
  return static_cast<int>(std::max_element(values.begin(), values.end()) -
                          values.begin());
}

absl::StatusOr<ChoiceResult> ResultOf(const ChoiceItem& item,
                                      const RowLosses::Row* rows) {
  ChoiceResult result;
  std::vector<double> by_character;
  std::vector<double> by_byte;
  for (size_t i = 0; i < item.choices.size(); ++i) {
    const ChoiceItem::Choice& choice = item.choices[i];
    const RowLosses::Row& row = rows[i];
    if (row.tokens != choice.tokens) {
      return absl::UnavailableError(absl::StrCat(
          "line ", item.line, ": the loss of choices[", i, "] is of ",
          row.tokens, " tokens, and it has ", choice.tokens,
          ": the scheduler or a worker is of another build, or no longer has "
          "all steps of the job; run the command again"));
    }
    if (!std::isfinite(row.loss)) {
      return absl::FailedPreconditionError(absl::StrCat(
          "line ", item.line, ": the loss of choices[", i, "] is ", row.loss,
          ": the weights give no likelihood; use a training.precision of more "
          "range"));
    }
    // Rows of the same text may be in other micro-batches, whose kernels sum in
    // another order: so the last bits of their losses may differ.
    const bool is_first = choice.same_as == ChoiceItem::Choice::kNone;
    const double loss = is_first ? row.loss : rows[choice.same_as].loss;
    result.log_likelihoods.push_back(-loss);
    by_character.push_back(-loss / choice.characters);
    by_byte.push_back(-loss / choice.bytes);
  }
  result.by_sum = LargestOf(result.log_likelihoods);
  result.by_character = LargestOf(by_character);
  result.by_byte = LargestOf(by_byte);
  return result;
}

ChoiceRate RateOf(const std::vector<ChoiceItem>& items,
                  const std::vector<ChoiceResult>& results,
                  int ChoiceResult::*chosen) {
  double right = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    right += results[i].*chosen == items[i].answer;
  }
  const auto count = static_cast<double>(items.size());
  ChoiceRate rate = {.value = right / count};
  if (count > 1) {
    rate.error = std::sqrt(rate.value * (1 - rate.value) / (count - 1));
  }
  return rate;
}

}  // namespace

RowLosses::RowLosses(int64_t rows, int64_t batch)
    : batch_(batch), rows_(rows) {}

void RowLosses::Add(const StepRecord& step) {
  const SequenceLosses& losses = step.sequence_losses();
  const int64_t first = (step.step() - 1) * batch_;
  const int64_t said =
      std::min({int64_t{losses.losses_size()},
                int64_t{losses.counted_tokens_size()}, batch_});
  // Behind the last row are the places without a window.
  const int64_t count =
      std::min(said, static_cast<int64_t>(rows_.size()) - first);
  if (first < 0) return;
  for (int64_t i = 0; i < count; ++i) {
    rows_[first + i] = {.loss = losses.losses(static_cast<int>(i)),
                        .tokens = losses.counted_tokens(static_cast<int>(i))};
  }
}

absl::StatusOr<ChoiceScores> ScoreChoices(
    const std::vector<ChoiceItem>& items,
    const std::vector<RowLosses::Row>& rows) {
  ChoiceScores scores;
  const RowLosses::Row* row = rows.data();
  for (const ChoiceItem& item : items) {
    ASSIGN_OR_RETURN(scores.results.emplace_back(), ResultOf(item, row));
    row += item.choices.size();
  }
  scores.acc = RateOf(items, scores.results, &ChoiceResult::by_sum);
  scores.acc_norm = RateOf(items, scores.results, &ChoiceResult::by_character);
  scores.acc_bytes = RateOf(items, scores.results, &ChoiceResult::by_byte);
  return scores;
}

std::string ChoiceResultLines(const std::vector<ChoiceItem>& items,
                              const ChoiceScores& scores) {
  std::string lines;
  for (size_t i = 0; i < items.size(); ++i) {
    const ChoiceItem& item = items[i];
    const ChoiceResult& result = scores.results[i];
    std::vector<int32_t> tokens;
    for (const ChoiceItem::Choice& choice : item.choices) {
      tokens.push_back(choice.tokens);
    }
    const nlohmann::ordered_json json = {
        {"line", item.line},
        {"answer", item.answer},
        {"acc", result.by_sum},
        {"acc_norm", result.by_character},
        {"acc_bytes", result.by_byte},
        {"log_likelihoods", result.log_likelihoods},
        {"tokens", tokens}};
    absl::StrAppend(&lines, json.dump(), "\n");
  }
  return lines;
}

}  // namespace troupe
