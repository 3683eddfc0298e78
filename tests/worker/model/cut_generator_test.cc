// Ranks that have a part of a model each, as threads, write the text that one
// with the whole model writes.
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "ops/cpu/device.h"
#include "proto/plan/mesh.h"
#include "proto/plan/slices.h"
#include "proto/plan/text_parts.h"
#include "scheduler/planner/plan_text.h"
#include "tests/worker/model/model_runner.h"
#include "tests/worker/model/numeric.h"
#include "worker/engine/text_ranks.h"
#include "worker/model/generator.h"

namespace troupe {
namespace {

constexpr int kPositions = 72;
constexpr int kPrompt = 70;  // read in two parts
constexpr int kTokens = 6;   // past the last position

struct Cut {
  int tensor = 1;
  int pipeline = 1;
};

// Heads and intermediate columns that 2, 3 and 4 divide, a vocabulary that none
// of them does; fewer key-value heads than ranks.
ModelSpec ModelFor(const std::string& architecture, bool tied, int tensor) {
  ModelSpec model;
  // Keys that are normed together are not shared by ranks.
  const int kv_heads = architecture == "olmoe" ? 12 : tensor == 3 ? 3 : 2;
  const LlamaShape llama = {.layers = 3,
                            .hidden = 48,
                            .heads = 12,
                            .kv_heads = kv_heads,
                            .head_dim = 4,
                            .intermediate = 72,
                            .positions = kPositions,
                            .tied = tied};
  if (architecture == "gpt2") {
    model = Gpt2Model({.layers = 3,
                       .hidden = 48,
                       .heads = 12,
                       .intermediate = 72,
                       .positions = kPositions,
                       .tied = tied});
  } else if (architecture == "gpt_neox") {
    model = GptNeoxModel({.layers = 3,
                          .hidden = 48,
                          .heads = 12,
                          .intermediate = 72,
                          .positions = kPositions,
                          .tied = tied});
  } else if (architecture == "llama") {
    model = LlamaModel(llama);
  } else {
    model = LlamaRelativeModel(architecture, llama);
  }
  model.set_initializer_range(0.2);  // so that tokens matter
  return model;
}

struct Written {
  std::vector<int32_t> tokens;
  std::vector<std::vector<float>> logits;  // that each was drawn from
};

Written Write(Generator& generator, const GenerateOptions& options) {
  std::vector<int32_t> prompt;
  for (int i = 0; i < kPrompt; ++i) prompt.push_back(i * i % 53);
  const absl::Status started = generator.Start(prompt, options);
  EXPECT_TRUE(started.ok()) << started;
  Written written;
  for (int i = 0; i < kTokens && started.ok(); ++i) {
    written.logits.push_back(generator.logits());
    const absl::StatusOr<int32_t> token = generator.Next();
    EXPECT_TRUE(token.ok()) << token.status();
    if (!token.ok()) break;
    written.tokens.push_back(*token);
  }
  return written;
}

// What the rank has of the whole model's parameters.
void TakePart(const TextPlan& plan, int rank, int unit, ModelRunner& whole,
              float* flat) {
  const Unit& part = plan.units(unit);
  std::memset(flat, 0, part.flat_elements() * sizeof(float));
  for (const Parameter& parameter : part.parameters()) {
    const absl::Span<float> from = whole.parameter(parameter.name());
    for (const SliceRun& run :
         RunsOf(parameter, {.mesh = &plan.mesh(), .rank = rank})) {
      std::memcpy(flat + parameter.offset() + run.local, &from[run.whole],
                  run.count * sizeof(float));
    }
  }
}

class CutGeneratorTest
    : public testing::TestWithParam<std::tuple<std::string, bool, Cut>> {
 protected:
  CutGeneratorTest()
      : device_(NewCpuDevice({.threads = 1})),
        model_(ModelFor(std::get<0>(GetParam()), std::get<1>(GetParam()),
                        cut().tensor)),
        whole_(*device_, model_,
               {.shape = {.sequences = 1, .sequence_length = 1}}) {
    whole_.Initialize(5);
    JobSpec job;
    *job.mutable_model() = model_;
    job.mutable_parallelism()->set_tensor(cut().tensor);
    job.mutable_parallelism()->set_pipeline(cut().pipeline);
    auto plan = PlanText(job);
    CHECK_OK(plan.status());
    plan_ = *std::move(plan);
    for (Group& group : *plan_.mutable_groups()) {
      group.add_carriers()->set_backend("in_process");
    }
  }

  Cut cut() const { return std::get<2>(GetParam()); }

  Written OfOne(const GenerateOptions& options) {
    auto generator =
        Generator::Create(*device_, model_, whole_.parameter_buffers());
    CHECK_OK(generator.status());
    return Write(**generator, options);
  }

  Written OfRank(int rank, InMemoryStore& store,
                 const GenerateOptions& options) {
    const auto device = NewCpuDevice({.threads = 1});
    JoinAbort abort;
    auto ranks = TextRanks::Join({.plan = plan_,
                                  .rank = rank,
                                  .device = *device,
                                  .store = store,
                                  .abort = abort,
                                  .timeout = absl::Minutes(1)});
    EXPECT_TRUE(ranks.ok()) << ranks.status();
    if (!ranks.ok()) return {};
    std::vector<std::unique_ptr<DeviceMemory>> memory;
    std::vector<void*> parameters(plan_.units_size(), nullptr);
    for (const int unit : UnitsOfText(plan_, rank)) {
      memory.push_back(std::make_unique<DeviceMemory>(
          *device, plan_.units(unit).flat_elements() * sizeof(float)));
      TakePart(plan_, rank, unit, whole_, memory.back()->floats());
      parameters[unit] = memory.back()->get();
    }
    EXPECT_TRUE((*ranks)->Meet().ok());
    const Stage& stage = StageOfText(plan_, rank);
    ModelPart part = {
        .runs = {{stage.unit(), stage.unit() + stage.unit_count()}},
        .place = {.mesh = &plan_.mesh(), .rank = rank},
        .peers = ranks->get()};
    part.units.units = {plan_.units().begin(), plan_.units().end()};
    part.units.tables = {plan_.tables().begin(), plan_.tables().end()};
    part.units.batch = plan_.batch();
    part.weights = WeightsAt(part.units.units, parameters);
    auto generator = Generator::Create(*device, model_, std::move(part));
    EXPECT_TRUE(generator.ok()) << generator.status();
    if (!generator.ok()) return {};
    return Write(**generator, options);
  }

  std::vector<Written> OfAll(const GenerateOptions& options) {
    InMemoryStore store;
    std::vector<Written> written(MeshSize(plan_.mesh()));
    std::vector<std::thread> threads;
    for (size_t rank = 0; rank < written.size(); ++rank) {
      threads.emplace_back(
          [&, rank] { written[rank] = OfRank(rank, store, options); });
    }
    for (std::thread& thread : threads) thread.join();
    return written;
  }

  const std::unique_ptr<Device> device_;
  const ModelSpec model_;
  ModelRunner whole_;
  TextPlan plan_;
};

TEST_P(CutGeneratorTest, WritesWhatTheWholeModelWrites) {
  for (const double temperature : {0.0, 0.8}) {
    const GenerateOptions options = {
        .temperature = temperature, .top_k = 20, .seed = 7};
    const Written one = OfOne(options);
    ASSERT_EQ(one.tokens.size(), static_cast<size_t>(kTokens));
    const std::vector<Written> all = OfAll(options);
    for (size_t rank = 0; rank < all.size(); ++rank) {
      SCOPED_TRACE(absl::StrCat("rank ", rank));
      EXPECT_EQ(all[rank].tokens, one.tokens);
      if (static_cast<int>(rank) < (cut().pipeline - 1) * cut().tensor) {
        continue;  // has no logits
      }
      ASSERT_EQ(all[rank].logits.size(), one.logits.size());
      for (size_t i = 0; i < one.logits.size(); ++i) {
        EXPECT_LT(RelativeError(all[rank].logits[i], one.logits[i]), 1e-5) << i;
      }
    }
  }
}

std::string CaseName(
    const testing::TestParamInfo<CutGeneratorTest::ParamType>& info) {
  const auto& [architecture, tied, cut] = info.param;
  return absl::StrCat(architecture, tied ? "_tied" : "", "_tensor", cut.tensor,
                      "_pipeline", cut.pipeline);
}

INSTANTIATE_TEST_SUITE_P(
    Models, CutGeneratorTest,
    testing::Combine(testing::ValuesIn(ModelNames()), testing::Bool(),
                     testing::Values(Cut{.tensor = 2}, Cut{.tensor = 3},
                                     Cut{.tensor = 4}, Cut{.pipeline = 2},
                                     Cut{.tensor = 2, .pipeline = 2},
                                     Cut{.tensor = 1, .pipeline = 5})),
    CaseName);

}  // namespace
}  // namespace troupe
