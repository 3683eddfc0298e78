// Predictions beside a published table: the zero-bubble paper (Qi et al., arXiv
// 2401.10241) profiles what passes and transfers of its four models take on
// A100s, and states the bubble rates of the schedules with those times. Ours,
// from whole plans, for the fewest micro-batches of each model, where bubbles
// are largest.
#include <cmath>
#include <string>

#include "gtest/gtest.h"
#include "proto/plan/meeting.h"
#include "scheduler/simulate/simulate.h"
#include "tests/golden/given_times.h"
#include "tests/scheduler/example_plan.h"
#include "tests/scheduler/synthetic_job.h"

namespace troupe {
namespace {

struct Published {
  const char* model;
  int ranks;
  int micro_batches;
  int virtual_stages;  // of interleaved 1F1B, one layer each
  double forward_ms, backward_input_ms, backward_weight_ms, transfer_ms;
  double one_f_one_b, interleaved, zb_h1, zb_h2;  // bubble over step time
};

constexpr Published kTable[] = {
    {"1.5B", 8, 24, 3, 18.522, 18.086, 9.337, 0.601,  //
     0.2431, 0.1055, 0.1585, 0.1083},
    {"6.2B", 8, 24, 4, 29.718, 29.444, 19.927, 0.527,  //
     0.2347, 0.0808, 0.1323, 0.0698},
    {"14.6B", 16, 48, 3, 11.347, 11.248, 8.132, 0.377,  //
     0.2552, 0.1104, 0.1397, 0.0672},
    {"28.3B", 32, 96, 2, 10.419, 10.207, 7.715, 0.408,  //
     0.2646, 0.1493, 0.1421, 0.0641},
};

class PublishedBubbles : public testing::TestWithParam<Published> {
 protected:
  double BubbleOf(const std::string& schedule, int virtual_stages) const {
    const Published& row = GetParam();
    const double us = 1e3 / virtual_stages;
    const Plan plan = ExamplePlan(
        SyntheticJob({.pipeline = row.ranks,
                      .schedule = schedule,
                      .micro_batches = row.micro_batches,
                      .virtual_stages = virtual_stages,
                      .units = row.ranks * virtual_stages,
                      .forward_us = us * row.forward_ms,
                      .backward_input_us = us * row.backward_input_ms,
                      .backward_weight_us = us * row.backward_weight_ms}));
    const double step = StepMs(plan);
    const double busy =
        row.micro_batches *
        (row.forward_ms + row.backward_input_ms + row.backward_weight_ms);
    return 1 - busy / step;
  }

 private:
  double StepMs(const Plan& plan) const {
    const int64_t transfer = std::llround(1e6 * GetParam().transfer_ms);
    const auto time = [&](int, const Instruction& instruction) {
      return IsTransfer(instruction.kind()) ? transfer
                                            : GivenTime(plan, instruction);
    };
    return 1e-6 * SimulateSteps(plan, time).period_ns;
  }
};

TEST_P(PublishedBubbles, AreOurs) {
  const Published& row = GetParam();
  EXPECT_NEAR(BubbleOf("1f1b", 1), row.one_f_one_b, 0.001);
  EXPECT_NEAR(BubbleOf("zb_h1", 1), row.zb_h1, 0.001);
  EXPECT_NEAR(BubbleOf("zb_h2", 1), row.zb_h2, 0.001);
  // Here a rank does not receive activations while it sends some.
  EXPECT_NEAR(BubbleOf("interleaved_1f1b", row.virtual_stages), row.interleaved,
              0.07 * row.interleaved);
}

INSTANTIATE_TEST_SUITE_P(ZeroBubble, PublishedBubbles,
                         testing::ValuesIn(kTable), [](const auto& info) {
                           std::string name = info.param.model;
                           name.replace(name.find('.'), 1, "_");
                           return name;
                         });

}  // namespace
}  // namespace troupe
