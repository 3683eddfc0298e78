#include "tests/worker/model/small_units.h"

#include <utility>

#include "proto/base/check.h"
#include "proto/plan/model.h"
#include "proto/plan/tensor_spec.h"
#include "scheduler/layouts/freeze.h"
#include "scheduler/layouts/lay_parts.h"
#include "tests/worker/model/model_runner.h"

namespace troupe {
namespace {

MicroBatchShape Shape(double dropout) {
  return {.sequences = kSmallSequences,
          .sequence_length = kSmallLength,
          .dropout = dropout};
}

UnitList Units(ModelSpec model, double dropout) {
  model = WithBiasesHeld(std::move(model));
  model.set_initializer_range(0.4);
  auto units = ModelUnits(model, Shape(dropout));
  CHECK_OK(units.status());
  LayParts({}, *units);  // a router's bias may be frozen
  LayFrozen(*units);
  return *std::move(units);
}

template <bool kTied>
UnitList Gpt2(double dropout) {
  return Units(Gpt2Model({.hidden = 6,
                          .heads = 2,
                          .intermediate = 7,
                          .vocab = kSmallVocabulary,
                          .positions = kSmallPositions,
                          .tied = kTied}),
               dropout);
}

ModelSpec Llama(bool bias) {
  return LlamaModel({.hidden = 6,
                     .heads = 4,
                     .kv_heads = 2,
                     .head_dim = 4,
                     .intermediate = 7,
                     .vocab = kSmallVocabulary,
                     .positions = kSmallPositions,
                     .tied = bias,
                     .bias = bias});
}

template <bool kBias>
UnitList PlainLlama(double dropout) {
  return Units(Llama(kBias), dropout);
}

// Of the relatives what differs from Llama's; Mistral's units are Llama's.
UnitList Qwen2(double dropout) {
  return Units(TinyModelNamed("qwen2", /*tied=*/false), dropout);
}

UnitList Qwen3(double dropout) {
  return Units(TinyModelNamed("qwen3", /*tied=*/false), dropout);
}

UnitList Mixtral(double dropout) {
  return Units(TinyModelNamed("mixtral", /*tied=*/false), dropout);
}

UnitList Qwen3Moe(double dropout) {
  return Units(TinyModelNamed("qwen3_moe", /*tied=*/false), dropout);
}

UnitList Olmoe(double dropout) {
  return Units(TinyModelNamed("olmoe", /*tied=*/false), dropout);
}

template <bool kOptions>
UnitList DeepseekV3(double dropout) {
  return Units(TinyModelNamed("deepseek_v3", /*tied=*/kOptions), dropout);
}

template <bool kOptions>
UnitList GptNeox(double dropout) {
  return Units(GptNeoxModel({.hidden = 8,
                             .heads = 2,
                             .intermediate = 7,
                             .vocab = kSmallVocabulary,
                             .positions = kSmallPositions,
                             .tied = kOptions,
                             .options = kOptions}),
               dropout);
}

UnitList YarnLlama(double dropout) {
  ModelSpec model = Llama(/*bias=*/false);
  model.mutable_rope_scaling()->set_type("yarn");
  model.mutable_rope_scaling()->set_factor(2);
  CHECK_OK(ResolveModel(model));
  return Units(std::move(model), dropout);
}

Dim Hidden(int64_t size) { return DimOf({{Dim::HIDDEN, size}}); }

int Linear(UnitBuilder& unit, int x, const char* name, int64_t columns) {
  return unit.Linear({.x = x,
                      .projections = {{name, Hidden(columns)}},
                      .output = name,
                      .in_out = true,
                      .bias = true,
                      .init_std = 0.4});
}

// The GELU between two products is part of both.
UnitList FusedGelu(double dropout) {
  UnitBuilder unit(Unit::BLOCK, {.shape = Shape(dropout)});
  const int inner = Linear(unit, unit.Input(Hidden(6)), "fc", 9);
  unit.Output(Linear(unit, unit.Gelu(inner), "proj", 5));
  UnitList units;
  units.Append(std::move(unit));
  return units;
}

// Nobody masks as it reads: the product behind it reads what is masked.
UnitList MaskBetweenProducts(double dropout) {
  UnitBuilder unit(Unit::BLOCK, {.shape = Shape(dropout)});
  const int inner = Linear(unit, unit.Input(Hidden(6)), "fc", 6);
  unit.Output(Linear(unit, unit.Dropout(inner), "proj", 6));
  UnitList units;
  units.Append(std::move(unit));
  return units;
}

}  // namespace

std::vector<SmallUnit> SmallUnits() {
  return {
      {"Gpt2Embedding", Gpt2<true>, 0, true},
      {"Gpt2Block", Gpt2<true>, 2, true},
      {"Gpt2TiedHead", Gpt2<true>, 3},
      {"Gpt2Head", Gpt2<false>, 3},
      {"LlamaEmbedding", PlainLlama<false>, 0},
      {"LlamaBlock", PlainLlama<false>, 2, true},
      {"LlamaBlockWithBiases", PlainLlama<true>, 2, true},
      {"LlamaYarnBlock", YarnLlama, 2, true},
      {"GptNeoxEmbedding", GptNeox<false>, 0, true},
      {"GptNeoxParallelBlock", GptNeox<false>, 2, true},
      {"GptNeoxSequentialBlock", GptNeox<true>, 2, true},
      {"GptNeoxHead", GptNeox<false>, 3},
      {"Qwen2Block", Qwen2, 1, true},
      {"Qwen3Block", Qwen3, 1, true},
      {"MixtralBlock", Mixtral, 1, true},
      {"Qwen3MoeBlock", Qwen3Moe, 1, true},
      {"OlmoeBlock", Olmoe, 1, true},
      {"DeepseekV3Block", DeepseekV3<false>, 1, true},
      {"DeepseekV3BlockOfOptions", DeepseekV3<true>, 1, true},
      {"LlamaTiedHead", PlainLlama<true>, 3},
      {"LlamaHead", PlainLlama<false>, 3},
      {"FusedGelu", FusedGelu, 0},
      {"MaskBetweenProducts", MaskBetweenProducts, 0, true},
  };
}

std::vector<int32_t> SmallBatch() {
  return {3, 3, 0, 10, 7, 3, 1, 0, /*targets:*/ 3, 9, -1, 0, 10, 3, -1, 5};
}

}  // namespace troupe
