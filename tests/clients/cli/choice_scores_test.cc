#include "clients/cli/choice_scores.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace troupe {
namespace {

using Row = RowLosses::Row;

ChoiceItem ItemOf(int64_t line, int answer,
                  std::vector<ChoiceItem::Choice> choices) {
  ChoiceItem item;
  item.line = line;
  item.answer = answer;
  item.choices = std::move(choices);
  return item;
}

// Rows of 2, 3 and 1 tokens, then of one each.
const std::vector<ChoiceItem> kItems = {
    ItemOf(1, 1, {{2, 3, 2}, {4, 4, 3}, {5, 6, 1}}),
    ItemOf(4, 0, {{1, 1, 1}, {1, 1, 1}}),
    ItemOf(5, 1, {{1, 1, 1}, {1, 1, 1}}),
};
const std::vector<Row> kRows = {{6, 2}, {8, 3}, {9.5, 1}, {2, 1},
                                {2, 1}, {2, 1}, {2, 1}};

TEST(ChoiceScores, HasThreeMeasures) {
  const auto scores = ScoreChoices(kItems, kRows);
  ASSERT_TRUE(scores.ok()) << scores.status();
  const ChoiceResult& first = scores->results[0];
  EXPECT_EQ(first.log_likelihoods, (std::vector<double>{-6, -8, -9.5}));
  EXPECT_EQ(first.by_sum, 0);
  EXPECT_EQ(first.by_character, 2);  // -3, -2, -1.9
  EXPECT_EQ(first.by_byte, 2);       // -2, -2, -1.58
  // Of equal ones the first, so the second item is right and the third is not.
  EXPECT_DOUBLE_EQ(scores->acc.value, 1.0 / 3);
  EXPECT_DOUBLE_EQ(scores->acc_norm.value, 1.0 / 3);
  EXPECT_DOUBLE_EQ(scores->acc_bytes.value, 1.0 / 3);
  // The sample's standard deviation over the root of its size.
  const double mean = 1.0 / 3;
  const double variance = (2 * mean * mean + (1 - mean) * (1 - mean)) / (3 - 1);
  EXPECT_DOUBLE_EQ(*scores->acc.error, std::sqrt(variance / 3));
}

// Their rows are computed apart, and the last bits may differ.
TEST(ChoiceScores, OfEqualChoicesTheFirstIsTaken) {
  const std::vector<ChoiceItem> items = {
      ItemOf(1, 1, {{3, 3, 1}, {2, 2, 1}, {2, 2, 1, 1}})};
  const auto scores = ScoreChoices(items, {{9, 1}, {2, 1}, {2 - 1e-12, 1}});
  ASSERT_TRUE(scores.ok()) << scores.status();
  EXPECT_EQ(scores->acc.value, 1);
  EXPECT_EQ(scores->acc_norm.value, 1);
  EXPECT_EQ(scores->acc_bytes.value, 1);
  EXPECT_EQ(scores->results[0].log_likelihoods,
            (std::vector<double>{-9, -2, -2}));
}

TEST(ChoiceScores, CharactersAndBytesMayDisagree) {
  // Two characters of three bytes each against five of one.
  const std::vector<ChoiceItem> items = {ItemOf(1, 0, {{2, 6, 1}, {5, 5, 1}})};
  const auto scores = ScoreChoices(items, {{3, 1}, {6, 1}});
  ASSERT_TRUE(scores.ok()) << scores.status();
  EXPECT_EQ(scores->acc.value, 1);
  EXPECT_EQ(scores->acc_norm.value, 0);   // -1.5 and -1.2
  EXPECT_EQ(scores->acc_bytes.value, 1);  // -0.5 and -1.2
  EXPECT_FALSE(scores->acc.error.has_value()) << "of one item";
}

TEST(ChoiceScores, RefusesWhatItDoesNotHave) {
  std::vector<Row> rows = kRows;
  rows[4].tokens = 0;
  const auto missing = ScoreChoices(kItems, rows);
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(missing.status().message().find(
                "line 4: the loss of choices[1] is of 0 tokens, and it has 1"),
            std::string::npos)
      << missing.status();
  for (const double loss : {static_cast<double>(NAN), HUGE_VAL}) {
    rows = kRows;
    rows[1].loss = loss;
    EXPECT_EQ(ScoreChoices(kItems, rows).status().code(),
              absl::StatusCode::kFailedPrecondition);
  }
}

StepRecord StepWith(int64_t step, const std::vector<double>& losses) {
  StepRecord record;
  record.set_step(step);
  for (const double loss : losses) {
    record.mutable_sequence_losses()->add_losses(loss);
    record.mutable_sequence_losses()->add_counted_tokens(
        static_cast<int32_t>(loss * 10));
  }
  return record;
}

TEST(RowLosses, HaveTheirPlacesByStep) {
  RowLosses losses(5, 2);
  losses.Add(StepWith(3, {0.5, 0}));  // a place without a row
  losses.Add(StepWith(1, {0.1, 0.2}));
  losses.Add(StepWith(1, {0.1, 0.2}));  // again, after a restart
  std::vector<int32_t> tokens;
  for (const Row& row : losses.rows()) tokens.push_back(row.tokens);
  EXPECT_EQ(tokens, (std::vector<int32_t>{1, 2, 0, 0, 5}));
  losses.Add(StepWith(2, {0.3, 0.4}));
  EXPECT_EQ(losses.rows()[3].loss, 0.4);
  EXPECT_EQ(losses.rows().size(), 5u);
}

TEST(RowLosses, TakeNothingFromStrangeRecords) {
  RowLosses losses(3, 2);
  losses.Add(StepWith(0, {0.1, 0.2}));
  losses.Add(StepWith(1 << 30, {0.1, 0.2}));
  losses.Add(StepWith(1, {}));
  losses.Add(StepWith(1, {0.1, 0.2, 0.3}));  // more than a step has
  EXPECT_EQ(losses.rows()[1].tokens, 2);
  EXPECT_EQ(losses.rows()[2].tokens, 0);
  StepRecord torn = StepWith(2, {0.3});
  torn.mutable_sequence_losses()->clear_counted_tokens();
  losses.Add(torn);
  EXPECT_EQ(losses.rows()[2].tokens, 0);
}

TEST(ChoiceScores, HasALineForEachItem) {
  const auto scores = ScoreChoices(kItems, kRows);
  ASSERT_TRUE(scores.ok()) << scores.status();
  const std::string lines = ChoiceResultLines(kItems, *scores);
  const nlohmann::json first =
      nlohmann::json::parse(lines.substr(0, lines.find('\n')));
  EXPECT_EQ(first["line"], 1);
  EXPECT_EQ(first["answer"], 1);
  EXPECT_EQ(first["acc"], 0);
  EXPECT_EQ(first["acc_norm"], 2);
  EXPECT_EQ(first["log_likelihoods"][1], -8.0);
  EXPECT_EQ(first["tokens"], (std::vector<int>{2, 3, 1}));
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 3);
}

}  // namespace
}  // namespace troupe
