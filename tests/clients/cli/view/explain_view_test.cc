#include "clients/cli/view/explain_view.h"

#include "absl/strings/str_split.h"
#include "clients/cli/view/format.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace troupe {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

Explanation Parse(const std::string& text) {
  Explanation explanation;
  EXPECT_TRUE(
      google::protobuf::TextFormat::ParseFromString(text, &explanation));
  return explanation;
}

constexpr char kWays[] =
    "ways { fields { parallelism { data: 2 tensor: 2 sequence_parallel: true"
    " } micro_batch_size: 4 } bytes_sent_per_step: 1048576"
    " memory_bytes: 1073741824 budget_bytes: 4294967296 fits: true"
    " step_seconds: 0.5 tokens_per_second: 16384"
    " advice: 'limited by compute, 92 % of the step; links of 2x: -12 %, still"
    " the first' }"
    "ways { fields { parallelism { data: 4 } is_job: true }"
    " memory_bytes: 8589934592 budget_bytes: 4294967296"
    " step_seconds: 0.4 tokens_per_second: 20480"
    " advice: 'device memory: 2.00x of what there is'"
    " chosen_memory: 'memory.recompute: full (+30 %)' }";

TEST(WayText, IsWhatStandsInTheJobFile) {
  const auto text_of = [](const std::string& fields) {
    WayFields way;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(fields, &way));
    return WayText(way);
  };
  EXPECT_EQ(text_of(""), "data: 1");
  EXPECT_EQ(text_of("parallelism { data: 2 context: 4 context_method: 'usp'"
                    " ulysses_size: 2 zero: 1 zero_size: 4 }"),
            "data: 2, context: 4, context_method: usp, ulysses_size: 2, "
            "zero: 1, zero_size: 4");
  EXPECT_EQ(text_of("parallelism { data: 2 tensor: 2"
                    " strategies { stage: 1 batch: 2 }"
                    " strategies { units: 'embedding' units: 'head'"
                    " tensor: 2 sequence_parallel: true } zero: 2 }"),
            "data: 2, tensor: 2, strategies: [{stage: 1, batch: 2}, "
            "{units: [embedding, head], tensor: 2, sequence_parallel: true}], "
            "zero: 2");
}

TEST(ExplanationText, IsATable) {
  const std::string text = ExplanationText(Parse(kWays));
  EXPECT_THAT(
      text,
      EndsWith(
          "     step  vs job  tokens/s     sent   memory  full  parallelism, "
          "and what would make it better\n"
          "1  500 ms   0.80x     16.4k  1.0 MiB  1.0 GiB   25%  data: 2, "
          "tensor: 2, sequence_parallel: true,\n"
          "                                                     "
          "micro_batch_size: 4\n"
          "                                                       limited by "
          "compute, 92 % of the step; links of 2x:\n"
          "                                                       -12 %, "
          "still the first\n"
          "\n"
          "                                                     too little "
          "memory; if there were enough:\n"
          "2  400 ms   1.00x     20.5k      0 B  8.0 GiB  200%  data: 4  <- "
          "the job\n"
          "                                                       device "
          "memory: 2.00x of what there is\n"
          "                                                       memory: auto "
          "takes memory.recompute: full (+30 %)\n"))
      << text;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    EXPECT_LE(TextWidth(line), 110) << line;
  }
}

// What was chosen and why, then the others, then what was ruled out.
TEST(ExplanationText, OfASearchBeginsWithTheChoice) {
  Explanation explanation = Parse(
      "ways { fields { parallelism { data: 2 pipeline: 2"
      " pipeline_schedule: 'zb_h1' } micro_batch_size: 4"
      " recompute: 'selective' } fits: true step_seconds: 0.5"
      " advice: 'limited by compute, 92 % of the step' }"
      "search { objective: 'time' workers: 4 candidates: 120 estimated: 60"
      " simulated: 9 error_max: 0.04"
      " ruled_out { reason: 'too little memory' count: 30"
      " nearest { parallelism { data: 4 } } lacks_bytes: 1048576 }"
      " ruled_out { reason: 'replicas do not divide' count: 3 } }");
  for (int i = 0; i < 12; ++i) *explanation.add_ways() = explanation.ways(0);
  const std::string text = ExplanationText(explanation);
  EXPECT_THAT(text, HasSubstr("chosen for 4 workers, by time: data: 2, "
                              "pipeline: 2, pipeline_schedule: zb_h1, "
                              "micro_batch_size: 4, memory.recompute: "
                              "selective\n"));
  EXPECT_THAT(text, HasSubstr("120 divisions of ranks and batches; 60 ways "
                              "estimated, 9 simulated, which estimates missed "
                              "by 4 % at most\n"));
  EXPECT_THAT(text, HasSubstr("  30 ruled out: too little memory; closest, by "
                              "1.0 MiB a rank: data: 4\n"));
  EXPECT_THAT(text, HasSubstr("and 2 more; --json has all"));
}

TEST(ExplanationText, SaysWhatWouldChangeTheChoice) {
  const std::string text = ExplanationText(Parse(
      "ways { fields { parallelism { data: 2 } } fits: true step_seconds: 0.5 }"
      "search { objective: 'time' workers: 4"
      " changes { change: 'twice the batch' is_same: true step_seconds: 1"
      " choice_step_seconds: 1 }"
      " changes { change: '10 % more device memory'"
      " fields { parallelism { data: 4 } } step_seconds: 0.4"
      " choice_step_seconds: 0.5 }"
      " changes { change: '5 % less device memory'"
      " fields { parallelism { tensor: 4 } } step_seconds: 0.8 }"
      " changes { change: '10 % less device memory' }"
      " changes { change: 'half the batch: not tried: time is over'"
      " is_same: true } }"));
  EXPECT_THAT(
      text,
      HasSubstr("\nwhat would be chosen with\n"
                "  twice the batch: the choice stays; a step takes 1.00 s\n"
                "  10 % more device memory: data: 4; a step takes 400 ms, with "
                "the choice as it is 500 ms\n"
                "  5 % less device memory: tensor: 4; a step takes 800 ms, and "
                "the choice as it is does not fit\n"
                "  10 % less device memory: nothing fits\n"
                "  half the batch: not tried: time is over\n"));
}

TEST(ExplanationText, ShowsTheQuickestTheJobAndTheBestOfEachLayout) {
  std::string ways;
  for (int i = 0; i < 20; ++i) {
    ways +=
        "ways { fits: true fields { parallelism { " +
        std::string(i < 15 ? "data: 2" : "context: 2 context_method: 'ring'") +
        " } " + (i == 12 ? "is_job: true" : "") +
        "} step_seconds: " + std::to_string(i + 1) + " }";
  }
  const std::string text = ExplanationText(Parse(ways + "left_out: 7"));
  EXPECT_THAT(text, HasSubstr("\n10  10.0 s"));
  EXPECT_THAT(text, Not(HasSubstr("\n11  11.0 s")));
  EXPECT_THAT(text, HasSubstr("\n13  13.0 s   1.00x"));
  EXPECT_THAT(text, HasSubstr("\n16  16.0 s"));
  EXPECT_THAT(text, HasSubstr("\nand 8 more; --json has all\n"
                              "\n7 more ways were not planned\n"));
}

TEST(ExplanationText, GroupsWhatIsRefusedByReason) {
  std::string refused;
  for (int data = 1; data <= 5; ++data) {
    refused +=
        "refused { fields { parallelism { data: " + std::to_string(data) +
        "} } reason: 'field: does not go; use another' }";
  }
  EXPECT_THAT(
      ExplanationText(
          Parse(refused + "refused { fields { is_job: true } reason: 'x' }")),
      EndsWith("\ncannot be planned\n"
               "  field: does not go: [data: 1], [data: 2], [data: 3] and 2 "
               "more\n"
               "  x: [data: 1 <- the job]\n"));
}

}  // namespace
}  // namespace troupe
