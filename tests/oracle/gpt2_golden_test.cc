// One rank against PyTorch in float64 (make_gpt2_golden.py): norm-wise relative
// errors of the logits, the loss, every gradient, and the weights after five
// AdamW steps with clipping.
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "ops/cpu/device.h"
#include "proto/plan/model.h"
#include "tests/oracle/golden_file.h"
#include "tests/worker/model/model_runner.h"
#include "tests/worker/model/numeric.h"

namespace troupe {
namespace {

constexpr int64_t kSteps = 5;
constexpr int64_t kSequences = 3;
constexpr int64_t kLength = 17;
constexpr int64_t kTokens = kSequences * kLength;

class Gpt2GoldenTest : public testing::TestWithParam<bool> {
 protected:
  Gpt2GoldenTest()
      : golden_(ReadGoldenFile(GetParam()
                                   ? "tests/oracle/gpt2_tied.safetensors"
                                   : "tests/oracle/gpt2_untied.safetensors")),
        device_(NewCpuDevice({.threads = 2})),
        runner_(
            *device_, Model(),
            {.shape = {.sequences = kSequences, .sequence_length = kLength}}) {
    for (const double token : golden_.Get("batches")) {
      batches_.push_back(static_cast<int32_t>(token));
    }
    runner_.Initialize(1);  // zero in the alignment gaps
    ForEachParameter([&](const std::string& name) {
      const std::vector<double>& initial = golden_.Get("initial." + name);
      const absl::Span<float> parameter = runner_.parameter(name);
      ASSERT_EQ(parameter.size(), initial.size()) << name;
      std::copy(initial.begin(), initial.end(), parameter.begin());
    });
  }

  ModelSpec Model() const {
    const auto size = [&](const char* name) {
      return static_cast<int>(golden_.Number(name));
    };
    ModelSpec model = Gpt2Model({.layers = size("n_layer"),
                                 .hidden = size("n_embd"),
                                 .heads = size("n_head"),
                                 .intermediate = size("n_inner"),
                                 .vocab = size("vocab_size"),
                                 .positions = size("n_positions"),
                                 .tied = GetParam()});
    model.set_layer_norm_epsilon(golden_.Number("layer_norm_epsilon"));
    return model;
  }

  template <typename Function>
  void ForEachParameter(const Function& function) {
    for (const Unit& unit : runner_.specs()) {
      for (const Parameter& parameter : unit.parameters()) {
        function(parameter.name());
      }
    }
  }

  // Tokens, then targets, of the step'th batch; the first is 1.
  const int32_t* Batch(int64_t step) const {
    return batches_.data() + (step - 1) * 2 * kTokens;
  }
  MicroBatchContext Training(int64_t step) const {
    return {.step = step, .training = true, .gradient_scale = 1.0 / kTokens};
  }

  const GoldenFile golden_;
  std::unique_ptr<Device> device_;
  ModelRunner runner_;
  std::vector<int32_t> batches_;
};

TEST_P(Gpt2GoldenTest, LogitsAndLoss) {
  runner_.Run(Batch(1), {.training = false});
  const double error = RelativeError(runner_.Logits(), golden_.Get("logits"));
  EXPECT_LT(error, 1e-5);
  const double loss = runner_.scalars()[0] / kTokens;
  const double expected = golden_.Get("losses")[0];
  EXPECT_NEAR(loss / expected, 1.0, 1e-5);
  EXPECT_EQ(runner_.scalars()[1], kTokens);
  RecordProperty("logits_error", std::to_string(error));
  for (int u = 0; u < runner_.units(); ++u) {
    for (const float gradient : runner_.gradients(u)) {
      ASSERT_EQ(gradient, 0) << "validation left a gradient in unit " << u;
    }
  }
}

TEST_P(Gpt2GoldenTest, EveryGradient) {
  runner_.Run(Batch(1), Training(1));
  double worst = 0;
  ForEachParameter([&](const std::string& name) {
    const double error =
        RelativeError(runner_.gradient(name), golden_.Get("gradient." + name));
    EXPECT_LT(error, 1e-4) << name;
    worst = std::max(worst, error);
  });
  std::printf("worst gradient error %.2e\n", worst);
}

TEST_P(Gpt2GoldenTest, FiveStepsWithClipping) {
  const OptimizerSpec optimizer =
      AdamWSpec({.lr = golden_.Number("lr"),
                 .beta1 = golden_.Number("beta1"),
                 .beta2 = golden_.Number("beta2"),
                 .eps = golden_.Number("eps"),
                 .weight_decay = golden_.Number("weight_decay")});
  for (int64_t step = 1; step <= kSteps; ++step) {
    runner_.scalars()[0] = 0;
    runner_.Run(Batch(step), Training(step));
    const double loss = runner_.scalars()[0] / kTokens;
    EXPECT_NEAR(loss / golden_.Get("losses")[step - 1], 1.0, 1e-5) << step;
    const double norm = runner_.Step(optimizer, step, golden_.Number("clip"));
    EXPECT_NEAR(norm / golden_.Get("norms")[step - 1], 1.0, 1e-5) << step;
  }
  double worst = 0;
  ForEachParameter([&](const std::string& name) {
    const double error =
        RelativeError(runner_.parameter(name), golden_.Get("final." + name));
    EXPECT_LT(error, 1e-4) << name;
    worst = std::max(worst, error);
    // Five small steps leave the weights near where they were, so the way that
    // they went is compared too.
    const std::vector<double>& initial = golden_.Get("initial." + name);
    std::vector<double> expected = golden_.Get("final." + name);
    std::vector<float> way(expected.size());
    for (size_t i = 0; i < way.size(); ++i) {
      way[i] = static_cast<float>(runner_.parameter(name)[i] - initial[i]);
      expected[i] -= initial[i];
    }
    EXPECT_LT(RelativeError(way, expected), 1e-3) << name;
  });
  std::printf("worst weight error %.2e\n", worst);
}

INSTANTIATE_TEST_SUITE_P(Tied, Gpt2GoldenTest, testing::Values(true));
INSTANTIATE_TEST_SUITE_P(Untied, Gpt2GoldenTest, testing::Values(false));

}  // namespace
}  // namespace troupe
