// Bytes that ranks send and keep where they share the experts of layers,
// counted in whole plans and held to the formulas of docs/experts.md.
#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "gtest/gtest.h"
#include "proto/base/check.h"
#include "proto/plan/find_program.h"
#include "scheduler/planner/planner.h"
#include "scheduler/simulate/cost_model.h"
#include "scheduler/simulate/rates.h"
#include "tests/scheduler/example_job.h"

namespace troupe {
namespace {

// Of a mixtral whose experts ranks share: ranks, and the room of a round.
using ExpertsCase = std::tuple<int, double>;

class ExpertBytes : public testing::TestWithParam<ExpertsCase> {
 protected:
  static constexpr int64_t kExperts = 8;
  static constexpr int64_t kChoices = 2;
  static constexpr int64_t kHidden = 16;
  static constexpr int64_t kTokens = 2 * 8;  // of a rank's micro-batch
  static constexpr int64_t kRows = kTokens * kChoices;

  static Plan PlanOf(int ranks, int expert, double slack) {
    JobSpec job = ExampleJob({.data = ranks});
    ModelSpec& model = *job.mutable_model();
    model.set_architecture("mixtral");
    model.set_intermediate_size(32);
    model.set_num_experts(kExperts);
    job.mutable_parallelism()->set_expert(expert);
    if (slack > 0) job.mutable_parallelism()->set_expert_slack(slack);
    auto plan = CompilePlan(job, ExampleWorkers(ranks));
    CHECK_OK(plan.status());
    return *std::move(plan);
  }

  static int64_t Stash(const Plan& plan) {
    int64_t bytes = 0;
    for (const Buffer& buffer :
         FindProgram(plan.roles(0), Program::TRAIN)->buffers()) {
      if (buffer.kind() == Buffer::STASH && buffer.unit() == 1) {
        bytes = std::max(bytes, buffer.bytes());
      }
    }
    return bytes;
  }
};

// With even load rows go there and back once, in either direction, and gates
// with them, whatever the room of a round.
TEST_P(ExpertBytes, AreThoseOfRowsAndGates) {
  const auto& [ranks, slack] = GetParam();
  const Plan plan = PlanOf(ranks, ranks, slack);
  std::map<std::pair<int, bool>, int64_t> sent;
  for (const Instruction& i :
       FindProgram(plan.roles(0), Program::TRAIN)->instructions()) {
    if (i.kind() != Instruction::EXCHANGE) continue;
    sent[{i.unit(), i.exchange().backward()}] +=
        CollectiveBytesSent({.bytes = CollectiveBytes(plan, 0, i),
                             .ranks = ranks,
                             .collective = i.exchange().collective()});
  }
  const int64_t offsets = (ranks - 1) * (kExperts + 1) * 4;
  const int64_t rows = kRows * kHidden * 4 * (ranks - 1) / ranks;
  const int64_t gates = kRows * 4 * (ranks - 1) / ranks;
  const std::map<std::pair<int, bool>, int64_t> wanted = {
      {{1, false}, offsets + 2 * rows + gates},
      {{1, true}, 2 * rows + gates},
      {{2, false}, offsets + 2 * rows + gates},
      {{2, true}, 2 * rows + gates}};
  EXPECT_EQ(sent, wanted);
}

// Room for fewer rows is less that is kept; products count the rows that are
// there if experts are evenly loaded, as many as on ranks that have all
// experts.
TEST_P(ExpertBytes, RoomIsWhatIsKept) {
  const auto& [ranks, slack] = GetParam();
  const Plan all = PlanOf(ranks, 1, 0);
  const Plan plan = PlanOf(ranks, ranks, slack);
  const Plan most = PlanOf(ranks, ranks, /*slack=*/ranks);
  EXPECT_LE(Stash(plan), Stash(most));
  EXPECT_EQ(Stash(plan) < Stash(most), slack < ranks);
  EXPECT_EQ(plan.units(1).forward().matmul_flops(),
            all.units(1).forward().matmul_flops());
  EXPECT_EQ(plan.units(1).backward_weight().matmul_flops(),
            all.units(1).backward_weight().matmul_flops());
}

INSTANTIATE_TEST_SUITE_P(All, ExpertBytes,
                         testing::Values(ExpertsCase{2, 2}, ExpertsCase{2, 1},
                                         ExpertsCase{4, 4}, ExpertsCase{4, 1.5},
                                         ExpertsCase{8, 1}));

}  // namespace
}  // namespace troupe
