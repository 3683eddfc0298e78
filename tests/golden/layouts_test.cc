// Bytes that ranks send where units are cut, counted in whole plans and held to
// the papers' formulas (docs/layouts.md), to the byte.
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "proto/plan/find_program.h"
#include "proto/plan/groups.h"
#include "scheduler/planner/planner.h"
#include "scheduler/simulate/cost_model.h"
#include "scheduler/simulate/rates.h"
#include "tests/scheduler/example_job.h"

namespace troupe {
namespace {

// Tensor, sequence parallel, precision.
using Case = std::tuple<int, bool, std::string>;

class LayoutBytes : public testing::TestWithParam<Case> {
 protected:
  static constexpr int64_t kHidden = 48;
  static constexpr int64_t kTokens = 2 * 8;  // of a micro-batch
  static constexpr int kMicroBatches = 3;

  static JobSpec Job() {
    JobSpec job = ExampleJob({.micro_batches = kMicroBatches});
    job.mutable_model()->set_hidden_size(kHidden);
    job.mutable_model()->set_num_attention_heads(8);
    job.mutable_training()->set_dropout(0.1);
    return job;
  }
};

TEST_P(LayoutBytes, AreThoseOfThePapers) {
  const auto& [tensor, sequence, precision] = GetParam();
  JobSpec job = Job();
  job.mutable_training()->set_precision(precision);
  job.mutable_parallelism()->set_tensor(tensor);
  job.mutable_parallelism()->set_sequence_parallel(sequence);
  const auto plan = CompilePlan(job, ExampleWorkers(tensor));
  ASSERT_TRUE(plan.ok()) << plan.status();

  // What a rank sends, by unit and direction, of all micro-batches.
  std::map<std::pair<int, bool>, int64_t> sent;
  for (const Role& role : plan->roles()) {
    sent.clear();
    for (const Instruction& i :
         FindProgram(role, Program::TRAIN)->instructions()) {
      if (i.kind() != Instruction::EXCHANGE) continue;
      sent[{i.unit(), i.exchange().backward()}] += CollectiveBytesSent(
          {.bytes = CollectiveBytes(*plan, 0, i),
           .ranks = GroupSize(plan->mesh(), plan->groups(i.group())),
           .collective = i.exchange().collective()});
    }
    const int64_t element = precision == "bf16" ? 2 : 4;
    // r S: all but its own share of [tokens, hidden].
    const int64_t r_s =
        kMicroBatches * kTokens * kHidden * element * (tensor - 1) / tensor;
    const int64_t parts = kMicroBatches * (tensor - 1) * 12 * kTokens;
    const int head = plan->units_size() - 1;
    const int64_t once = sequence ? r_s : 2 * r_s;
    const int64_t both = 2 * r_s;  // an all-reduce, or a gather and a scatter
    EXPECT_EQ((sent[{0, false}]), once);
    EXPECT_EQ((sent[{0, true}]), sequence ? r_s : 0);
    for (int u = 1; u < head; ++u) {
      EXPECT_EQ((sent[{u, false}]), 2 * both) << "unit " << u;
      EXPECT_EQ((sent[{u, true}]), 2 * both) << "unit " << u;
    }
    EXPECT_EQ((sent[{head, false}]), (sequence ? r_s : 0) + parts);
    EXPECT_EQ((sent[{head, true}]), once);
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, LayoutBytes,
    testing::Combine(testing::Values(2, 4, 8), testing::Bool(),
                     testing::Values("f32", "bf16")),
    [](const auto& info) {
      return absl::StrCat(std::get<2>(info.param), "_", std::get<0>(info.param),
                          std::get<1>(info.param) ? "_sequence" : "");
    });

}  // namespace
}  // namespace troupe
