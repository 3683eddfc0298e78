#include "tests/oracle/golden_suite.h"

#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "ops/cpu/device.h"
#include "proto/base/check.h"
#include "proto/plan/model.h"
#include "proto/plan/sum_names.h"
#include "proto/plan/sums.h"
#include "tests/worker/model/numeric.h"

namespace troupe {
namespace {

constexpr int64_t kSteps = 5;
constexpr int64_t kSequences = 3;
constexpr int64_t kLength = 17;
constexpr int64_t kTokens = kSequences * kLength;

ModelSpec Model(const GoldenFile& golden) {
  ModelSpec model;
  const auto status =
      google::protobuf::util::JsonStringToMessage(golden.model, &model);
  CHECK(status.ok()) << golden.model << ": " << status.ToString();
  CHECK_OK(ResolveModel(model));
  return model;
}

OptimizerSpec OptimizerOf(const GoldenFile& golden) {
  if (golden.optimizer.empty()) {
    return AdamWSpec({.lr = golden.Number("lr"),
                      .beta1 = golden.Number("beta1"),
                      .beta2 = golden.Number("beta2"),
                      .eps = golden.Number("eps"),
                      .weight_decay = golden.Number("weight_decay")});
  }
  OptimizerSpec optimizer;
  const auto status =
      google::protobuf::util::JsonStringToMessage(golden.optimizer, &optimizer);
  CHECK(status.ok()) << golden.optimizer << ": " << status.ToString();
  return optimizer;
}

LoraSpec LoraOf(const GoldenFile& golden) {
  LoraSpec lora;
  if (golden.lora.empty()) return lora;
  const auto status =
      google::protobuf::util::JsonStringToMessage(golden.lora, &lora);
  CHECK(status.ok()) << golden.lora << ": " << status.ToString();
  return lora;
}

std::string FileOf(const std::string& parameter) {
  return absl::StrCat("tests/oracle/",
                      parameter.substr(0, parameter.find('@')), ".safetensors");
}

int64_t ChunkOf(const std::string& parameter) {
  const size_t at = parameter.find('@');
  return at == std::string::npos ? 0 : std::stoll(parameter.substr(at + 1));
}

}  // namespace

GoldenSuite::GoldenSuite()
    : loss_chunk_tokens_(ChunkOf(GetParam())),
      golden_(ReadGoldenFile(FileOf(GetParam()))),
      lora_(LoraOf(golden_)),
      device_(NewCpuDevice({.threads = 2})),
      runner_(*device_, Model(golden_),
              {.shape = {.sequences = kSequences,
                         .sequence_length = kLength,
                         .lora = golden_.lora.empty() ? nullptr : &lora_}},
              {.freeze = golden_.freeze,
               .optimizer = OptimizerOf(golden_),
               .loss_chunk_tokens = loss_chunk_tokens_}) {
  for (const double token : golden_.Get("batches")) {
    batches_.push_back(static_cast<int32_t>(token));
  }
  CHECK_EQ(batches_.size(), kSteps * 2 * kTokens);
  runner_.Initialize(1);  // zero in the alignment gaps
  for (const std::string& name : ParameterNames()) {
    const std::vector<double>& initial = golden_.Get("initial." + name);
    const absl::Span<float> parameter = runner_.parameter(name);
    CHECK_EQ(parameter.size(), initial.size()) << name;
    std::copy(initial.begin(), initial.end(), parameter.begin());
  }
}

std::vector<std::string> GoldenSuite::ParameterNames() const {
  std::vector<std::string> names = TrainedNames();
  const std::vector<std::string> frozen = FrozenNames();
  names.insert(names.end(), frozen.begin(), frozen.end());
  return names;
}

std::vector<std::string> GoldenSuite::TrainedNames() const {
  return Names(/*frozen=*/false);
}

std::vector<std::string> GoldenSuite::FrozenNames() const {
  return Names(/*frozen=*/true);
}

std::vector<std::string> GoldenSuite::Names(bool frozen) const {
  std::vector<std::string> names;
  for (const Unit& unit : runner_.specs()) {
    for (const Parameter& parameter : unit.parameters()) {
      if (parameter.frozen() == frozen) names.push_back(parameter.name());
    }
  }
  return names;
}

const int32_t* GoldenSuite::Batch(int64_t step) const {
  return batches_.data() + (step - 1) * 2 * kTokens;
}

int64_t GoldenSuite::Counted(int64_t step) const {
  const int32_t* const targets = Batch(step) + kTokens;
  return kTokens - std::count(targets, targets + kTokens, -1);
}

MicroBatchContext GoldenSuite::Training(int64_t step) const {
  return {.step = step,
          .training = true,
          .gradient_scale = 1.0 / static_cast<double>(Counted(step)),
          .token_scale = 1.0 / kTokens};
}

// Of the file's tensors whose names begin so the rest of the name, ascending.
std::vector<std::string> NamesBehind(const std::string& prefix,
                                     const GoldenFile& golden) {
  std::vector<std::string> names;
  for (const auto& [name, values] : golden.tensors) {
    if (name.compare(0, prefix.size(), prefix) == 0) {
      names.push_back(name.substr(prefix.size()));
    }
  }
  return names;
}

void GoldenSuite::ExpectAddedLoss(int64_t step) {
  const auto sum = FindSum(runner_.sums(), kAddedLossSum);
  const bool has_modules = runner_.model().num_nextn_predict_layers() > 0;
  ASSERT_EQ(sum.has_value(), has_modules);
  if (!has_modules) return;
  double& added = runner_.scalars()[sum->first];
  const double weight = runner_.model().mtp_coefficient() /
                        runner_.model().num_nextn_predict_layers();
  EXPECT_NEAR(weight * added / static_cast<double>(Counted(step)) /
                  golden_.Get("added_losses")[step - 1],
              1.0, 1e-5)
      << step;
  added = 0;
}

TEST_P(GoldenSuite, HasTheSameParameters) {
  EXPECT_THAT(ParameterNames(), testing::UnorderedElementsAreArray(
                                    NamesBehind("initial.", golden_)));
  EXPECT_THAT(TrainedNames(), testing::UnorderedElementsAreArray(
                                  NamesBehind("gradient.", golden_)));
}

TEST_P(GoldenSuite, LogitsAndLoss) {
  runner_.Run(Batch(1), {.training = false});
  if (loss_chunk_tokens_ == 0) {  // else they are never all there
    const double error = RelativeError(runner_.Logits(), golden_.Get("logits"));
    EXPECT_LT(error, 1e-5);
    std::printf("logits error %.2e\n", error);
  }
  const double loss = runner_.scalars()[0] / static_cast<double>(Counted(1));
  const double expected = golden_.Get("losses")[0];
  EXPECT_NEAR(loss / expected, 1.0, 1e-5);
  EXPECT_EQ(runner_.scalars()[1], Counted(1));
  for (int u = 0; u < runner_.units(); ++u) {
    for (const float gradient : runner_.gradients(u)) {
      ASSERT_EQ(gradient, 0) << "validation left a gradient in unit " << u;
    }
  }
}

TEST_P(GoldenSuite, EveryGradient) {
  runner_.Run(Batch(1), Training(1));
  double worst = 0;
  for (const std::string& name : TrainedNames()) {
    const double error =
        RelativeError(runner_.gradient(name), golden_.Get("gradient." + name));
    EXPECT_LT(error, 1e-4) << name;
    worst = std::max(worst, error);
  }
  for (const std::string& name : FrozenNames()) {
    EXPECT_THAT(runner_.gradient(name), testing::Each(0)) << name;
  }
  std::printf("worst gradient error %.2e\n", worst);
}

TEST_P(GoldenSuite, FiveStepsWithClipping) {
  const OptimizerSpec optimizer = OptimizerOf(golden_);
  for (int64_t step = 1; step <= kSteps; ++step) {
    runner_.scalars()[0] = 0;
    runner_.Run(Batch(step), Training(step));
    const double loss =
        runner_.scalars()[0] / static_cast<double>(Counted(step));
    EXPECT_NEAR(loss / golden_.Get("losses")[step - 1], 1.0, 1e-5) << step;
    ExpectAddedLoss(step);
    const double norm = runner_.Step(optimizer, step, golden_.Number("clip"));
    EXPECT_NEAR(norm / golden_.Get("norms")[step - 1], 1.0, 1e-5) << step;
  }
  for (const std::string& name : FrozenNames()) {
    EXPECT_THAT(runner_.parameter(name),
                testing::ElementsAreArray(golden_.Get("initial." + name)))
        << name;
  }
  double worst = 0;
  for (const std::string& name : TrainedNames()) {
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
  }
  std::printf("worst weight error %.2e\n", worst);
}

}  // namespace troupe
