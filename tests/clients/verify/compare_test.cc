#include "clients/verify/compare.h"

#include <cmath>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "storage/checkpoint/checkpoint_dir.h"
#include "storage/checkpoint/commit.h"
#include "storage/engine/make_engine.h"

namespace troupe {
namespace {

// What one step left: two tensors and their first moments.
struct State {
  std::vector<float> a = {3, 4};
  std::vector<float> b = {1, 2, 2};
  std::vector<float> moment_a = {0, 0};
  std::vector<float> moment_b = {0, 0, 0};  // empty: `b` is frozen
};

std::string Save(const std::string& name, int64_t step, const State& state) {
  const CheckpointAttempt attempt = {
      .dir = absl::StrCat(testing::TempDir(), "/compare_", name),
      .step = step,
      .token = "test"};
  std::filesystem::remove_all(CheckpointPath(attempt.dir, step));
  EXPECT_TRUE(BeginCheckpoint(attempt).ok());
  std::vector<ShardToWrite> shards;
  const auto add = [&](const char* tensor, const std::vector<float>& values) {
    const std::vector<int64_t> shape = {static_cast<int64_t>(values.size())};
    shards.push_back({.name = tensor,
                      .dtype = StoredDType::kF32,
                      .shape = shape,
                      .box = WholeTensor(shape),
                      .data = values.data()});
  };
  add("a", state.a);
  add("b", state.b);
  add("optimizer.exp_avg.a", state.moment_a);
  if (!state.moment_b.empty()) add("optimizer.exp_avg.b", state.moment_b);
  const auto io = MakeIoEngine();
  const auto shard = WriteShardFile(**io, attempt, {.rank = 0}, shards);
  EXPECT_TRUE(shard.ok()) << shard.status();
  Manifest manifest;
  manifest.step = step;
  const auto path = CommitCheckpoint(attempt, manifest, {*shard});
  EXPECT_TRUE(path.ok()) << path.status();
  return *path;
}

OptimizerSpec AdamW() {
  OptimizerSpec optimizer;
  optimizer.set_name("adamw");
  optimizer.add_betas(0.9);
  optimizer.add_betas(0.95);
  return optimizer;
}

TEST(RelativeDistance, IsInfiniteWhereItIsNoNumber) {
  EXPECT_EQ(RelativeDistance(1, 4), 0.25);
  EXPECT_EQ(RelativeDistance(0, 4), 0);
  EXPECT_EQ(RelativeDistance(0, 0), 0);
  EXPECT_EQ(RelativeDistance(1, 0), INFINITY);
  EXPECT_EQ(RelativeDistance(std::nan(""), 4), INFINITY);
  EXPECT_EQ(RelativeDistance(1, std::nan("")), INFINITY);
  EXPECT_EQ(RelativeDistance(INFINITY, INFINITY), INFINITY);
  EXPECT_EQ(RelativeDistance(0, INFINITY), INFINITY);
}

TEST(CompareCheckpoints, EqualRunsAreNotApart) {
  const std::string path = Save("equal", 1, {.moment_a = {1, 1}});
  const auto distances = CompareCheckpoints({.run = {.after = path},
                                             .reference = {.after = path},
                                             .optimizer = AdamW()});
  ASSERT_TRUE(distances.ok()) << distances.status();
  ASSERT_EQ(distances->size(), 2u);
  for (const TensorDistance& distance : *distances) {
    EXPECT_EQ(distance.weights, 0);
    EXPECT_EQ(distance.gradient, 0);
  }
}

TEST(CompareCheckpoints, WeightsByTheirNorm) {
  const std::string one = Save("one", 1, {});
  const std::string other = Save("other", 1, {.a = {3, 4.5}});
  const auto distances = CompareCheckpoints({.run = {.after = other},
                                             .reference = {.after = one},
                                             .optimizer = AdamW()});
  ASSERT_TRUE(distances.ok()) << distances.status();
  EXPECT_EQ((*distances)[0].name, "a") << "the furthest comes first";
  EXPECT_NEAR((*distances)[0].weights, 0.5 / 5, 1e-12);
  EXPECT_EQ((*distances)[1].weights, 0);
}

// Of biases, which begin at zero, the size of what moved them says nothing: it
// may be noise.
TEST(CompareCheckpoints, WhatIsAllButZeroIsMeasuredByTheOthers) {
  const std::string one = Save("all_but_zero", 1, {.b = {1e-9f, 0, 0}});
  const std::string other =
      Save("other_noise", 1, {.b = {0, 1e-9f, 0}, .moment_a = {0, 0}});
  const auto distances = CompareCheckpoints({.run = {.after = other},
                                             .reference = {.after = one},
                                             .optimizer = AdamW()});
  ASSERT_TRUE(distances.ok()) << distances.status();
  EXPECT_EQ((*distances)[0].name, "b");
  EXPECT_NEAR((*distances)[0].weights,
              1e-9 * std::sqrt(2) / std::sqrt(3 * 25 / 5), 1e-12);
}

// m2 - 0.9 m1 = 0.1 g: the run's gradient of `b` is (1, 0, 0), the other's
// (1, 0, 0.5), though the moments before differ as well.
TEST(CompareCheckpoints, GradientsFromTwoStates) {
  const RunCheckpoints run = {
      .before = Save("run", 1, {.moment_b = {10, 0, 0}}),
      .after = Save("run", 2, {.moment_b = {9.1f, 0, 0}})};
  const RunCheckpoints reference = {
      .before = Save("reference", 1, {.moment_b = {0, 10, 0}}),
      .after = Save("reference", 2, {.moment_b = {0.1f, 9, 0.05f}})};
  const auto distances = CompareCheckpoints(
      {.run = run, .reference = reference, .optimizer = AdamW()});
  ASSERT_TRUE(distances.ok()) << distances.status();
  EXPECT_EQ((*distances)[0].name, "b");
  EXPECT_NEAR((*distances)[0].gradient, 0.5 / std::sqrt(1.25), 1e-5);
  EXPECT_EQ((*distances)[1].gradient, 0);
}

TEST(CompareCheckpoints, AnAverageOfWeightsIsNoGradient) {
  OptimizerSpec sgd;
  sgd.set_name("sgd");
  sgd.mutable_ema()->set_decay(0.9);
  const std::string path = Save("sgd", 1, {});
  const auto distances = CompareCheckpoints(
      {.run = {.after = path}, .reference = {.after = path}, .optimizer = sgd});
  ASSERT_TRUE(distances.ok()) << distances.status();
  ASSERT_EQ(distances->size(), 2u);
  EXPECT_EQ((*distances)[0].gradient, 0);
}

TEST(CompareCheckpoints, WhatIsFrozenHasNoGradient) {
  const std::string run = Save("run", 1, {.moment_a = {1, 0}, .moment_b = {}});
  const std::string reference =
      Save("reference", 1, {.moment_a = {1, 1}, .moment_b = {}});
  const auto distances = CompareCheckpoints({.run = {.after = run},
                                             .reference = {.after = reference},
                                             .optimizer = AdamW()});
  ASSERT_TRUE(distances.ok()) << distances.status();
  EXPECT_EQ((*distances)[0].name, "a");
  EXPECT_NEAR((*distances)[0].gradient, 1 / std::sqrt(2), 1e-5);
  EXPECT_EQ((*distances)[1].name, "b");
  EXPECT_EQ((*distances)[1].gradient, 0);
  EXPECT_EQ((*distances)[1].weights, 0);
}

// std::max and a sum would drop them.
TEST(CompareCheckpoints, ANumberThatIsNoneIsAsFarApartAsCanBe) {
  const float nan = std::nanf("");
  const std::string good = Save("good", 1, {});
  const std::string bad = Save("bad", 1, {.b = {1, nan, 2}});
  const std::string infinite = Save("infinite", 1, {.moment_a = {INFINITY, 0}});
  const auto furthest = [](const std::string& run, const std::string& than) {
    const auto distances = CompareCheckpoints({.run = {.after = run},
                                               .reference = {.after = than},
                                               .optimizer = AdamW()});
    EXPECT_TRUE(distances.ok()) << distances.status();
    return distances->at(0);
  };
  EXPECT_EQ(furthest(bad, good).name, "b");
  EXPECT_EQ(furthest(bad, good).weights, INFINITY);
  EXPECT_EQ(furthest(good, bad).weights, INFINITY);
  EXPECT_EQ(furthest(bad, bad).weights, INFINITY) << "alike is not equal here";
  EXPECT_EQ(furthest(infinite, good).name, "a");
  EXPECT_EQ(furthest(infinite, good).gradient, INFINITY);
}

TEST(CompareCheckpoints, WhatIsNotThereIsNamed) {
  const std::string path = Save("there", 1, {});
  const std::string smaller = Save("smaller", 1, {.a = {3}});
  EXPECT_EQ(CompareCheckpoints({.run = {.after = smaller},
                                .reference = {.after = path},
                                .optimizer = AdamW()})
                .status()
                .code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(CompareCheckpoints({.run = {.after = "/nowhere"},
                                .reference = {.after = path},
                                .optimizer = AdamW()})
                .status()
                .code(),
            absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace troupe
