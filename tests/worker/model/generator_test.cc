#include "worker/model/generator.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ops/cpu/device.h"
#include "tests/worker/model/model_runner.h"
#include "tests/worker/model/numeric.h"

namespace troupe {
namespace {

constexpr int kPositions = 150;  // more than two chunks of decoding

// An architecture, and whether it is tied.
using Case = std::tuple<std::string, bool>;

class GeneratorTest : public testing::TestWithParam<Case> {
 protected:
  GeneratorTest()
      : device_(NewCpuDevice({.threads = 1})),
        model_(Model()),
        runner_(*device_, model_,
                {.shape = {.sequences = 1, .sequence_length = kPositions}}) {
    runner_.Initialize(5);
    auto generator =
        Generator::Create(*device_, model_, runner_.parameter_buffers());
    EXPECT_TRUE(generator.ok()) << generator.status();
    generator_ = *std::move(generator);
    for (int i = 0; i < 2 * kPositions; ++i) text_.push_back(i * i % 53);
  }

  ModelSpec Model() const {
    const auto& [architecture, tied] = GetParam();
    ModelSpec model =
        ModelNamed(architecture, {.positions = kPositions, .tied = tied});
    model.set_initializer_range(0.3);  // so that tokens matter
    return model;
  }

  // The row of logits behind `context`, by one whole forward pass.
  std::vector<float> FullLogits(const std::vector<int32_t>& context) {
    std::vector<int32_t> batch = context;
    batch.resize(2 * kPositions, 0);  // causal: what follows does not matter
    runner_.Run(batch.data(), {.training = false});
    const std::vector<float> logits = runner_.Logits();
    const auto row = logits.begin() + (context.size() - 1) * 61;
    return {row, row + 61};
  }
  std::vector<int32_t> Text(int64_t begin, int64_t end) const {
    return {text_.begin() + begin, text_.begin() + end};
  }

  std::unique_ptr<Device> device_;
  const ModelSpec model_;
  ModelRunner runner_;
  std::unique_ptr<Generator> generator_;
  std::vector<int32_t> text_;
};

TEST_P(GeneratorTest, CachedLogitsAreThoseOfAFullForward) {
  for (const int64_t length : {1, 2, 63, 64, 65, 130, 150}) {
    const std::vector<int32_t> prompt = Text(0, length);
    ASSERT_TRUE(generator_->Start(prompt, {}).ok());
    EXPECT_LT(RelativeError(generator_->logits(), FullLogits(prompt)), 1e-4)
        << length;
  }
}

TEST_P(GeneratorTest, ALongTextIsReadInPartsBetweenWhichItCanBeEnded) {
  int asked = 0;
  int most = 1000;
  GenerateOptions options;
  options.go_on = [&] {
    return ++asked > most ? absl::CancelledError("enough") : absl::OkStatus();
  };
  ASSERT_TRUE(generator_->Start(Text(0, 150), options).ok());
  EXPECT_EQ(asked, 2);  // between three parts of 64, 64 and 22
  asked = 0;
  most = 1;
  EXPECT_EQ(generator_->Start(Text(0, 150), options),
            absl::CancelledError("enough"));
  asked = 0;
  ASSERT_TRUE(generator_->Start(Text(0, 64), options).ok());
  ASSERT_TRUE(generator_->Next().ok());
  EXPECT_EQ(asked, 0);
}

TEST_P(GeneratorTest, GreedyTakesTheMostLikelyTokenAtEveryStep) {
  std::vector<int32_t> text = Text(0, 60);
  ASSERT_TRUE(generator_->Start(text, {.temperature = 0}).ok());
  for (int i = 0; i < 12; ++i) {
    const std::vector<float> logits = FullLogits(text);
    const auto token = generator_->Next();
    ASSERT_TRUE(token.ok());
    EXPECT_EQ(*token,
              std::max_element(logits.begin(), logits.end()) - logits.begin());
    text.push_back(*token);
    EXPECT_LT(RelativeError(generator_->logits(), FullLogits(text)), 1e-4);
  }
}

TEST_P(GeneratorTest, AFullContextGoesOnFromItsLastHalf) {
  std::vector<int32_t> text = Text(0, kPositions);
  ASSERT_TRUE(generator_->Start(text, {.temperature = 0}).ok());
  text.push_back(*generator_->Next());
  text.erase(text.begin(), text.end() - kPositions / 2);
  EXPECT_LT(RelativeError(generator_->logits(), FullLogits(text)), 1e-4);

  // A prompt that is too long is cut in the same way.
  ASSERT_TRUE(generator_->Start(Text(0, kPositions + 9), {}).ok());
  EXPECT_LT(RelativeError(generator_->logits(),
                          FullLogits(Text(kPositions + 9 - kPositions / 2,
                                          kPositions + 9))),
            1e-4);
}

TEST_P(GeneratorTest, TheSeedDecidesTheText) {
  const auto draw = [&](uint64_t seed) {
    std::vector<int32_t> drawn;
    EXPECT_TRUE(generator_->Start(Text(0, 5), {.seed = seed}).ok());
    for (int i = 0; i < 20; ++i) drawn.push_back(*generator_->Next());
    return drawn;
  };
  const auto first = draw(1);
  EXPECT_EQ(first, draw(1));
  EXPECT_NE(first, draw(2));
}

TEST_P(GeneratorTest, TopOneIsGreedy) {
  ASSERT_TRUE(generator_->Start(Text(0, 5), {.temperature = 0}).ok());
  std::vector<int32_t> greedy;
  for (int i = 0; i < 8; ++i) greedy.push_back(*generator_->Next());
  ASSERT_TRUE(generator_->Start(Text(0, 5), {.top_k = 1, .seed = 9}).ok());
  for (int i = 0; i < 8; ++i) EXPECT_EQ(*generator_->Next(), greedy[i]);
}

TEST_P(GeneratorTest, RefusesPromptsThatItCannotRead) {
  EXPECT_EQ(generator_->Start({}, {}).code(),
            absl::StatusCode::kInvalidArgument);
  const absl::Status status = generator_->Start({3, 61}, {});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              testing::HasSubstr("token 61 at place 1"));
}

// The cache holds what the forward rounds in the same way; sums are taken in
// another order, and where they round to the other side, so do later ones.
TEST_P(GeneratorTest, Bf16IsNearItsOwnForward) {
  ModelRunner runner(
      *device_, model_,
      {.shape = {.sequences = 1, .sequence_length = 70, .dtype = BF16}});
  runner.Initialize(5);
  const auto generator =
      Generator::Create(*device_, model_, runner.parameter_buffers(), BF16);
  ASSERT_TRUE(generator.ok()) << generator.status();
  ASSERT_TRUE((*generator)->Start(Text(0, 70), {}).ok());
  std::vector<int32_t> batch = Text(0, 70);
  batch.resize(140, 0);
  runner.Run(batch.data(), {.training = false});
  const std::vector<float> logits = runner.Logits();
  EXPECT_LT(RelativeError((*generator)->logits(),
                          absl::MakeSpan(logits).subspan(69 * 61)),
            0.03);
}

// A text that is longer than the window goes on from half a window.
TEST(GeneratorWindowTest, AWindowIsTheContext) {
  const auto device = NewCpuDevice({.threads = 1});
  ModelSpec model = ModelNamed("mistral", {.positions = 40});
  model.set_sliding_window(10);
  ModelRunner runner(*device, model,
                     {.shape = {.sequences = 1, .sequence_length = 10}});
  runner.Initialize(5);
  auto generator =
      Generator::Create(*device, model, runner.parameter_buffers());
  ASSERT_TRUE(generator.ok()) << generator.status();
  std::vector<int32_t> text;
  for (int i = 0; i < 11; ++i) text.push_back(i * i % 53);
  ASSERT_TRUE((*generator)->Start(text, {}).ok());
  const std::vector<float> logits((*generator)->logits().begin(),
                                  (*generator)->logits().end());
  text.erase(text.begin(), text.begin() + 6);  // its last half window
  ASSERT_TRUE((*generator)->Start(text, {}).ok());
  EXPECT_EQ(RelativeError((*generator)->logits(), logits), 0);
}

INSTANTIATE_TEST_SUITE_P(Models, GeneratorTest,
                         testing::Combine(testing::ValuesIn(ModelNames()),
                                          testing::Bool()));

}  // namespace
}  // namespace troupe
