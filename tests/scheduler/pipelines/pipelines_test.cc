// All schedules, all small shapes: every step once, no wait for ever, and the
// papers' bubbles and peaks of activations.
#include "scheduler/pipelines/pipelines.h"

#include <functional>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/scheduler/pipelines/closed_forms.h"
#include "tests/scheduler/pipelines/evaluate.h"

namespace troupe {
namespace {

constexpr int kRanksMax = 8;
constexpr int kMicroBatchesMax = 24;
constexpr int kVirtualStagesMax = 3;

std::string Named(const Pipeline& pipeline, const PipelineShape& shape) {
  return absl::StrCat(pipeline.name, " on ", shape.ranks, " ranks with ",
                      shape.micro_batches, " micro-batches and ",
                      shape.virtual_stages, " stages a rank");
}

// Of all schedules and shapes, those that the schedule has.
using Visit =
    std::function<void(const Pipeline& pipeline, const PipelineShape& shape,
                       const ComputeOrder& order)>;
void ForAll(const Visit& visit) {
  for (const Pipeline& pipeline : Pipelines()) {
    PipelineShape shape;
    for (shape.ranks = 1; shape.ranks <= kRanksMax; ++shape.ranks) {
      for (shape.micro_batches = 1; shape.micro_batches <= kMicroBatchesMax;
           ++shape.micro_batches) {
        for (shape.virtual_stages = 1;
             shape.virtual_stages <= kVirtualStagesMax;
             ++shape.virtual_stages) {
          const auto order = pipeline.order(shape);
          if (!order.ok()) continue;
          SCOPED_TRACE(Named(pipeline, shape));
          visit(pipeline, shape, *order);
          if (::testing::Test::HasFailure()) return;
        }
      }
    }
  }
}

int Busy(const PipelineShape& shape, const PassTimes& times) {
  return shape.micro_batches * shape.virtual_stages * times.all();
}

TEST(Pipelines, NamesAreUniqueAndFound) {
  std::set<std::string> names;
  for (const Pipeline& pipeline : Pipelines()) {
    EXPECT_TRUE(names.emplace(pipeline.name).second) << pipeline.name;
    EXPECT_EQ(FindPipeline(pipeline.name)->name, pipeline.name);
    EXPECT_FALSE(pipeline.summary.empty());
  }
}

TEST(Pipelines, UnknownNames) {
  EXPECT_EQ(FindPipeline("niave").status().message(),
            "parallelism.pipeline_schedule: there is no \"niave\"; did you "
            "mean \"naive\"?");
  EXPECT_TRUE(absl::StartsWith(
      FindPipeline("zigzag").status().message(),
      "parallelism.pipeline_schedule: there is no \"zigzag\"; there are: "
      "naive, gpipe, 1f1b, "));
}

TEST(Pipelines, DefaultVirtualStagesAreAllowed) {
  for (const Pipeline& pipeline : Pipelines()) {
    EXPECT_TRUE(pipeline
                    .order({.ranks = 4,
                            .micro_batches = 8,
                            .virtual_stages = pipeline.default_virtual_stages})
                    .ok())
        << pipeline.name;
  }
}

TEST(Pipelines, RefusalsNameAField) {
  for (const Pipeline& pipeline : Pipelines()) {
    for (int ranks = 1; ranks <= kRanksMax; ++ranks) {
      for (int stages = 1; stages <= kVirtualStagesMax; ++stages) {
        const auto order = pipeline.order(
            {.ranks = ranks, .micro_batches = 5, .virtual_stages = stages});
        if (order.ok()) continue;
        EXPECT_EQ(order.status().code(), absl::StatusCode::kInvalidArgument);
        const absl::string_view message = order.status().message();
        EXPECT_TRUE(absl::StartsWith(message, "parallelism.pipeline: ") ||
                    absl::StartsWith(message, "parallelism.virtual_stages: ") ||
                    absl::StartsWith(message, "training.global_batch_size: "))
            << message;
      }
    }
  }
}

TEST(Pipelines, ShapesThatThereAre) {
  std::map<std::string, int> shapes;
  ForAll([&](const Pipeline& pipeline, const PipelineShape&,
             const ComputeOrder&) { ++shapes[std::string(pipeline.name)]; });
  const int all = kRanksMax * kMicroBatchesMax;
  EXPECT_EQ(shapes, (std::map<std::string, int>{
                        {"naive", all},
                        {"gpipe", all},
                        {"1f1b", all},
                        {"interleaved_1f1b",
                         2 * (24 + 12 + 8 + 6 + 4 + 4 + 3 + 3)},  // ranks | M
                        {"chimera", all / 2},                     // even ranks
                        {"zb_h1", all},
                        {"zb_h2", all},
                        {"zb_v", all},
                        {"pipedream", all},
                        {"pipedream_2bw", all - 28},  // M < ranks
                    }));
}

// One rank runs forward, backward-input and backward-weight of a stage and
// micro-batch, each once; virtual stages are spread evenly.
TEST(Pipelines, EveryStepOnce) {
  ForAll([](const Pipeline&, const PipelineShape& shape,
            const ComputeOrder& order) {
    ASSERT_EQ(order.size(), shape.ranks);
    std::map<std::tuple<int, int>, std::multiset<int>> kinds;
    std::map<std::tuple<int, int>, std::set<int>> ranks;
    for (int rank = 0; rank < shape.ranks; ++rank) {
      for (const ComputeStep& step : order[rank]) {
        kinds[{step.stage, step.micro_batch}].insert(step.kind);
        ranks[{step.stage, step.micro_batch}].insert(rank);
        ASSERT_TRUE(step.kind == ComputeStep::kForward || step.ahead == 0);
      }
      ASSERT_EQ(order[rank].size(),
                3 * shape.micro_batches * shape.virtual_stages);
    }
    ASSERT_EQ(kinds.size(), shape.stages() * shape.micro_batches);
    for (const auto& [what, once] : kinds) {
      ASSERT_EQ(once, (std::multiset<int>{0, 1, 2}));
      ASSERT_EQ(ranks[what].size(), 1);
    }
  });
}

TEST(Pipelines, TakeAndKeepWhatThePapersSay) {
  for (const PassTimes& times : {PassTimes{}, PassTimes{2, 1, 1},
                                 PassTimes{4, 4, 2}, PassTimes{3, 3, 2}}) {
    ForAll([&](const Pipeline& pipeline, const PipelineShape& shape,
               const ComputeOrder& order) {
      const ClosedForm& form = FindClosedForm(pipeline.name);
      if (pipeline.asynchronous) return;
      const Evaluation result =
          Evaluate(order, {.shape = shape, .times = times});
      ASSERT_TRUE(result.complete) << ComputeOrderText(order);
      for (int rank = 0; rank < shape.ranks; ++rank) {
        ASSERT_EQ(result.peaks[rank], form.peak(shape, rank))
            << "rank " << rank;
      }
      const auto bubble = form.bubble(shape, times);
      if (!bubble) return;
      ASSERT_EQ(form.of_a_rank ? result.longest_span : result.makespan,
                Busy(shape, times) + *bubble)
          << ComputeOrderText(order);
    });
  }
}

TEST(Pipelines, ThereIsAClosedFormForEqualTimes) {
  ForAll([](const Pipeline& pipeline, const PipelineShape& shape,
            const ComputeOrder&) {
    ASSERT_TRUE(FindClosedForm(pipeline.name).bubble(shape, {}).has_value());
  });
}

// Where ranks do not wait for each other between optimizer steps, a step takes
// what the papers promise, and those that run ahead keep no more than they say.
TEST(Pipelines, StepsFollowEachOtherWithoutABarrier) {
  constexpr int kPrograms = kRanksMax + 4;
  ForAll([](const Pipeline& pipeline, const PipelineShape& shape,
            const ComputeOrder& order) {
    if (!pipeline.asynchronous && !pipeline.overlaps_steps) return;
    const ClosedForm& form = FindClosedForm(pipeline.name);
    const Evaluation result =
        Evaluate(order, {.shape = shape, .programs = kPrograms});
    ASSERT_TRUE(result.complete) << ComputeOrderText(order);
    for (int rank = 0; rank < shape.ranks; ++rank) {
      const std::vector<int64_t>& ends = result.program_ends[rank];
      ASSERT_EQ(ends[kPrograms - 1] - ends[kPrograms - 2],
                Busy(shape, {}) + *form.bubble(shape, {}))
          << ComputeOrderText(order);
      ASSERT_EQ(result.peaks[rank], form.peak(shape, rank)) << "rank " << rank;
    }
  });
}

// docs/pipelines.md: what clipping costs the schedules that overlap steps.
TEST(Pipelines, WithABarrierRanksWaitForTheLast) {
  ForAll([](const Pipeline& pipeline, const PipelineShape& shape,
            const ComputeOrder& order) {
    if (!pipeline.overlaps_steps) return;
    if (shape.micro_batches < 2 * shape.ranks - 1) return;
    ASSERT_EQ(Evaluate(order, {.shape = shape}).makespan,
              Busy(shape, {}) + shape.ranks - 1);
  });
}

// The share of a step that ranks idle, as printed in the papers.
double BubbleOfTotal(absl::string_view schedule, const PipelineShape& shape,
                     const PassTimes& times) {
  const double bubble = *FindClosedForm(schedule).bubble(shape, times);
  return bubble / (bubble + Busy(shape, times));
}

TEST(Pipelines, PublishedBubbles) {
  const PassTimes longer_backward = {1, 1, 1};
  const PassTimes equal = {2, 1, 1};  // backward as long as forward
  for (const int p : {2, 4, 8}) {
    for (const int m : {8, 16, 32}) {
      const PipelineShape shape = {.ranks = p, .micro_batches = m};
      const double fill = p - 1;
      for (const char* name : {"gpipe", "1f1b"}) {
        EXPECT_DOUBLE_EQ(BubbleOfTotal(name, shape, longer_backward),
                         fill / (m + fill));
      }
      // Megatron-LM: of the ideal time, (p - 1) / (v m).
      const PipelineShape three = {
          .ranks = p, .micro_batches = m, .virtual_stages = 3};
      EXPECT_DOUBLE_EQ(BubbleOfTotal("interleaved_1f1b", three, equal),
                       fill / (3 * m + fill));
      // Chimera, table 2, with D = p and N = m.
      EXPECT_DOUBLE_EQ(BubbleOfTotal("chimera", shape, equal),
                       (p - 2.0) / (2 * m + p - 2));
      // Zero bubble, T_F = T_B = T_W: a third of 1F1B's bubble.
      EXPECT_EQ(*FindClosedForm("zb_h1").bubble(shape, {}) * 3,
                *FindClosedForm("1f1b").bubble(shape, {}));
    }
  }
}

}  // namespace
}  // namespace troupe
