#include "tests/worker/model/model_runner.h"

#include <algorithm>
#include <cmath>

#include "ops/reduce.h"
#include "proto/base/check.h"
#include "proto/plan/load_ranges.h"
#include "proto/plan/model.h"
#include "proto/plan/ops/op_rules.h"
#include "proto/plan/optimizer_rules.h"
#include "proto/plan/segments.h"
#include "proto/plan/slices.h"
#include "proto/plan/trained.h"
#include "scheduler/layouts/freeze.h"
#include "scheduler/layouts/lay_parts.h"
#include "scheduler/layouts/optimizer_groups.h"
#include "scheduler/tiers/loss_chunks.h"
#include "tests/worker/model/unit_sums.h"
#include "worker/instructions/fill_sample.h"
#include "worker/layers/element_dtype.h"
#include "worker/model/initialize.h"
#include "worker/model/optimizer.h"

namespace troupe {

ModelSpec Gpt2Model(const Gpt2Size& size) {
  ModelSpec model;
  model.set_architecture("gpt2");
  model.set_num_hidden_layers(size.layers);
  model.set_hidden_size(size.hidden);
  model.set_num_attention_heads(size.heads);
  model.set_vocab_size(size.vocab);
  model.set_max_position_embeddings(size.positions);
  model.set_intermediate_size(size.intermediate);
  model.set_layer_norm_epsilon(1e-5);
  model.set_initializer_range(0.02);
  model.set_tie_word_embeddings(size.tied);
  return model;
}

ModelSpec LlamaModel(const LlamaShape& shape) {
  ModelSpec model;
  model.set_architecture("llama");
  model.set_num_hidden_layers(shape.layers);
  model.set_hidden_size(shape.hidden);
  model.set_num_attention_heads(shape.heads);
  model.set_num_key_value_heads(shape.kv_heads);
  model.set_head_dim(shape.head_dim);
  model.set_intermediate_size(shape.intermediate);
  model.set_vocab_size(shape.vocab);
  model.set_max_position_embeddings(shape.positions);
  model.set_rope_theta(100);
  model.set_tie_word_embeddings(shape.tied);
  model.set_attention_bias(shape.bias);
  model.set_mlp_bias(shape.bias);
  CHECK_OK(ResolveModel(model));
  return model;
}

namespace {

// Heads of values are narrower than those of keys; layer 0 has no experts where
// there are others.
ModelSpec DeepseekModel(const LlamaShape& shape) {
  ModelSpec model = LlamaModel(shape);
  model.set_architecture("deepseek_v3");
  model.clear_mlp_bias();
  model.clear_num_key_value_heads();
  model.clear_head_dim();
  model.set_q_lora_rank(shape.tied ? 0 : shape.hidden / 2);
  model.set_kv_lora_rank(shape.hidden / 2 + 1);
  model.set_qk_nope_head_dim(shape.head_dim);
  model.set_qk_rope_head_dim(2);
  model.set_v_head_dim(shape.head_dim - 1);
  model.set_rope_interleave(!shape.tied);
  model.set_first_k_dense_replace(shape.layers > 1 ? 1 : 0);
  // Of all experts, so that no rounding changes a choice.
  model.set_num_experts(4);
  model.set_num_experts_per_tok(4);
  model.set_n_group(2);
  model.set_topk_group(2);
  model.set_moe_intermediate_size(shape.intermediate / 2);
  CHECK_OK(ResolveModel(model));
  return model;
}

}  // namespace

ModelSpec LlamaRelativeModel(const std::string& architecture,
                             const LlamaShape& shape) {
  if (architecture == "deepseek_v3") return DeepseekModel(shape);
  ModelSpec model = LlamaModel(shape);
  model.set_architecture(architecture);
  model.clear_attention_bias();
  model.clear_mlp_bias();
  if (architecture == "mistral") model.set_sliding_window(shape.positions);
  if (architecture == "mixtral") model.set_num_experts(4);
  if (architecture == "olmoe") {
    model.set_num_experts(4);  // all, so that no rounding changes a choice
    model.set_num_experts_per_tok(4);
    model.set_attention_bias(shape.tied);
    model.set_head_dim(shape.hidden / shape.heads);
    if (model.head_dim() % 2 == 1) {  // no pairs turn
      model.set_head_dim(shape.hidden);
      model.set_num_attention_heads(1);
      model.set_num_key_value_heads(1);
    }
  }
  if (architecture == "qwen2_moe") {
    model.set_num_experts(5);
    model.set_moe_intermediate_size(shape.intermediate / 2);
    model.set_shared_expert_intermediate_size(shape.intermediate);
  }
  if (architecture == "qwen3_moe") {
    model.set_num_experts(5);
    model.set_num_experts_per_tok(3);
    model.set_moe_intermediate_size(shape.intermediate / 2);
    model.set_norm_topk_prob(shape.tied);
    if (shape.layers > 1) model.add_mlp_only_layers(0);
  }
  CHECK_OK(ResolveModel(model));
  return model;
}

ModelSpec WithBiasesHeld(ModelSpec model) {
  if (model.experts().balance() != "bias") return model;
  model.mutable_experts()->set_balance("none");
  model.mutable_experts()->clear_bias_rate();
  return model;
}

ModelSpec GptNeoxModel(const GptNeoxShape& shape) {
  ModelSpec model;
  model.set_architecture("gpt_neox");
  model.set_num_hidden_layers(shape.layers);
  model.set_hidden_size(shape.hidden);
  model.set_num_attention_heads(shape.heads);
  model.set_intermediate_size(shape.intermediate);
  model.set_vocab_size(shape.vocab);
  model.set_max_position_embeddings(shape.positions);
  model.set_rope_theta(100);
  model.set_partial_rotary_factor(0.5);
  model.set_tie_word_embeddings(shape.tied);
  model.set_use_parallel_residual(!shape.options);
  model.set_attention_bias(!shape.options);
  model.set_hidden_act(shape.options ? "gelu_new" : "gelu");
  CHECK_OK(ResolveModel(model));
  return model;
}

std::vector<std::string> ModelNames() {
  return {"gpt2",    "gpt_neox",  "llama",     "mistral", "qwen2",      "qwen3",
          "mixtral", "qwen2_moe", "qwen3_moe", "olmoe",   "deepseek_v3"};
}

ModelSpec ModelNamed(const std::string& architecture,
                     const CommonShape& shape) {
  if (architecture == "gpt2") {
    return Gpt2Model({.positions = shape.positions, .tied = shape.tied});
  }
  if (architecture == "gpt_neox") {
    return GptNeoxModel({.positions = shape.positions, .tied = shape.tied});
  }
  const LlamaShape llama = {.positions = shape.positions, .tied = shape.tied};
  return architecture == "llama" ? LlamaModel(llama)
                                 : LlamaRelativeModel(architecture, llama);
}

ModelSpec TinyModelNamed(const std::string& architecture, bool tied) {
  if (architecture == "gpt2") {
    return Gpt2Model({.layers = 1,
                      .hidden = 6,
                      .heads = 2,
                      .intermediate = 7,
                      .vocab = 11,
                      .positions = 8,
                      .tied = tied});
  }
  if (architecture == "gpt_neox") {
    return GptNeoxModel({.layers = 1,
                         .hidden = 8,
                         .heads = 2,
                         .intermediate = 7,
                         .vocab = 11,
                         .positions = 8,
                         .tied = tied,
                         .options = tied});
  }
  const LlamaShape llama = {.layers = 1,
                            .hidden = 6,
                            .heads = 2,
                            .kv_heads = 1,
                            .head_dim = 4,
                            .intermediate = 7,
                            .vocab = 11,
                            .positions = 8,
                            .tied = tied,
                            .bias = tied};
  return architecture == "llama" ? LlamaModel(llama)
                                 : LlamaRelativeModel(architecture, llama);
}

OptimizerSpec AdamWSpec(const AdamWSettings& settings) {
  OptimizerSpec spec;
  spec.set_name("adamw");
  spec.set_lr(settings.lr);
  spec.add_betas(settings.beta1);
  spec.add_betas(settings.beta2);
  spec.set_eps(settings.eps);
  spec.set_weight_decay(settings.weight_decay);
  return spec;
}

ModelRunner::ModelRunner(Device& device, const ModelSpec& model,
                         const BuildUnitsOptions& options,
                         const Training& trained)
    : device_(device), model_(model), options_(options) {
  auto listed = ModelUnits(model, options.shape);
  CHECK_OK(listed.status());
  TrainingSpec training;
  for (const std::string& pattern : trained.freeze) {
    training.add_freeze(pattern);
  }
  CHECK_OK(MarkFrozen(training, *listed));
  CHECK_OK(MarkGroups(trained.optimizer, *listed));
  LayParts(trained.optimizer, *listed);
  LayFrozen(*listed);
  CHECK_OK(ChunkLoss(trained.loss_chunk_tokens, *listed));
  listed->Derive();
  specs_ = listed->units;
  tables_ = listed->tables;
  schema_ = listed->batch;
  Plan plan;
  *plan.mutable_units() = {specs_.begin(), specs_.end()};
  *plan.mutable_tables() = {listed->tables.begin(), listed->tables.end()};
  edges_ = Edges(plan).all();
  for (const Edge& edge : edges_) {
    const int64_t bytes = OutputBytes(plan, edge.from, edge.output);
    activations_.try_emplace({edge.from, edge.value}, device, bytes);
    activation_gradients_.try_emplace({edge.from, edge.output}, device, bytes);
  }
  BuildUnitsOptions build = options;
  sums_ = SumsOf(*listed);
  build.sums = sums_;
  scalars_.resize(SumElements(sums_));
  auto units = BuildUnits(*listed, build);
  CHECK_OK(units.status());
  units_ = *std::move(units);
  int64_t workspace_bytes = 0;
  for (const Unit& unit : specs_) {
    const int64_t flat_bytes = unit.flat_elements() * 4;
    parameters_.emplace_back(device, flat_bytes);
    rounded_.emplace_back(device, rounds() ? flat_bytes / 2 : 0);
    gradients_.emplace_back(device, flat_bytes);
    state_.emplace_back(device, 2 * flat_bytes);
    stash_.emplace_back(device, unit.stash_bytes());
    weight_stash_.emplace_back(device, unit.weight_stash_bytes());
    segment_.emplace_back(device, unit.segment_bytes());
    segment_gradient_.emplace_back(device, unit.segment_gradient_bytes());
    gradients_.back().Zero();
    state_.back().Zero();
    workspace_bytes = std::max({workspace_bytes, unit.workspace_bytes(),
                                StepWorkspaceBytes(trained.optimizer, unit)});
  }
  workspace_ = std::make_unique<DeviceMemory>(device, workspace_bytes);
}

void ModelRunner::Initialize(uint64_t seed) {
  for (int u = 0; u < units(); ++u) {
    InitializeParameters(device_, specs_[u], {.seed = seed},
                         parameters_[u].get());
  }
  Round();
}

void ModelRunner::Round() {
  if (!rounds()) return;
  for (int u = 0; u < units(); ++u) {
    RoundParameters(device_, specs_[u].flat_elements(),
                    {.weights = parameters_[u].get(),
                     .parameters = rounded_[u].get(),
                     .type = DTypeOfElement(options_.shape.dtype)});
  }
}

void ModelRunner::FillBatch(const int32_t* tokens_and_targets) {
  const int64_t sequences = options_.shape.sequences;
  const int64_t length = options_.shape.sequence_length;
  const std::vector<int64_t> offsets = BatchOffsets(schema_);
  batch_.resize(offsets.back() / static_cast<int64_t>(sizeof(int32_t)));
  for (int64_t s = 0; s < sequences; ++s) {
    const int32_t* const tokens = tokens_and_targets + s * length;
    const int32_t* const targets = tokens + sequences * length;
    const TokenSample sample = {.tokens = {tokens, tokens + length},
                                .targets = {targets, targets + length},
                                .documents = {}};
    for (int i = 0; i < schema_.size(); ++i) {
      const auto fill = FindFillSample(schema_[i].source());
      CHECK_OK(fill.status());
      const int64_t first =
          offsets[i] / static_cast<int64_t>(sizeof(int32_t)) + s * length;
      (*fill)(sample, schema_[i].ahead(), batch_.data() + first);
    }
  }
}

UnitBuffers ModelRunner::Buffers(int unit, const int32_t* batch) {
  FillBatch(batch);
  const Unit& spec = specs_[unit];
  const int tied = spec.tied_size() > 0 ? spec.tied(0).unit() : -1;
  UnitBuffers buffers = {
      .batch = batch_.data(),
      .stash = stash_[unit].get(),
      .weight_stash = weight_stash_[unit].get(),
      .workspace = workspace_->get(),
      .segment = segment_[unit].get(),
      .segment_gradient = segment_gradient_[unit].get(),
      .parameters = computed(unit),
      .tied_parameters = tied >= 0 ? computed(tied) : nullptr,
      .parameter_gradients = gradients_[unit].get(),
      .tied_parameter_gradients = tied >= 0 ? gradients_[tied].get() : nullptr,
      .scalars = scalars_.data(),
  };
  for (const Edge& edge : edges_) {
    void* const value = activations_.at({edge.from, edge.value}).get();
    void* const gradient =
        activation_gradients_.at({edge.from, edge.output}).get();
    if (edge.from == unit) {
      buffers.output[edge.value] = value;
      buffers.output_gradient[edge.output] = gradient;
    }
    if (edge.to != unit) continue;
    buffers.input[edge.input] = value;
    buffers.input_gradient[edge.input] = gradient;
  }
  return buffers;
}

void ModelRunner::Run(const int32_t* batch, const MicroBatchContext& context) {
  Forward(batch, context);
  if (context.training) Backward(batch, context);
}

void ModelRunner::Forward(const int32_t* batch,
                          const MicroBatchContext& context) {
  for (int u = 0; u < units(); ++u) ForwardUnit(u, batch, context);
  CHECK_OK(device_.Synchronize());
}

void ModelRunner::Backward(const int32_t* batch,
                           const MicroBatchContext& context) {
  for (int u = units() - 1; u >= 0; --u) BackwardUnit(u, batch, context);
  CHECK_OK(device_.Synchronize());
}

void ModelRunner::ForwardUnit(int unit, const int32_t* batch,
                              const MicroBatchContext& context) {
  const UnitTable& table = tables_[specs_[unit].table()];
  const UnitBuffers buffers = Buffers(unit, batch);
  MicroBatchContext of_segment = context;
  for (const Segment& segment : ForwardSegments(table)) {
    units_[unit]->Forward(device_, of_segment, buffers);
    ++of_segment.segment;
    const int chunk = ChunksOfOps(table)[segment.begin];
    if (chunk == 0 || !context.training) continue;
    BackwardChunk(unit, chunk, buffers, context);
  }
}

void ModelRunner::BackwardChunk(int unit, int chunk, const UnitBuffers& buffers,
                                MicroBatchContext context) {
  const UnitTable& table = tables_[specs_[unit].table()];
  const std::vector<Segment> segments = BackwardSegments(table);
  for (int s = static_cast<int>(segments.size()) - 1; s >= 0; --s) {
    if (ChunksOfOps(table)[segments[s].begin] != chunk) continue;
    context.segment = s;
    if (unit > 0) units_[unit]->BackwardInput(device_, context, buffers);
    units_[unit]->BackwardWeight(device_, context, buffers);
  }
}

void ModelRunner::BackwardUnit(int unit, const int32_t* batch,
                               const MicroBatchContext& context) {
  BackwardChunk(unit, /*chunk=*/0, Buffers(unit, batch), context);
}

double ModelRunner::Step(const OptimizerSpec& spec, int64_t step, double clip) {
  double squared_norm = 0;
  const Tensor result(&squared_norm, DType::kF64, {1});
  for (int u = 0; u < units(); ++u) {
    float* const gradients = static_cast<float*>(gradients_[u].get());
    for (const Range& of : WeightRanges(specs_[u], TrainedRange(specs_[u]))) {
      SumOfSquares(device_,
                   {.x = Tensor(gradients + of.begin, DType::kF32, {of.size()}),
                    .result = result});
    }
  }
  const double norm = std::sqrt(squared_norm);
  const Optimizer optimizer(spec);
  for (int u = 0; u < units(); ++u) {
    CHECK_OK(optimizer.Step(
        device_, specs_[u],
        {.weights = parameters_[u].get(),
         .parameters = rounded_[u].get(),
         .gradients = gradients_[u].get(),
         .state = state_[u].get(),
         .step = step,
         .learning_rate = spec.lr(),
         .gradient_scale = ClipCoefficient(norm, clip),
         .holds = TrainedRange(specs_[u]),
         .tokens = static_cast<double>(options_.shape.sequences *
                                       options_.shape.sequence_length),
         .workspace = workspace_->get()}));
  }
  CHECK_OK(device_.Synchronize());
  return norm;
}

std::vector<void*> ModelRunner::parameter_buffers() const {
  std::vector<void*> buffers;
  for (int u = 0; u < units(); ++u) buffers.push_back(computed(u));
  return buffers;
}

absl::Span<float> ModelRunner::parameter(const std::string& name) {
  for (int u = 0; u < units(); ++u) {
    for (const Parameter& parameter : specs_[u].parameters()) {
      if (parameter.name() != name) continue;
      return parameters(u).subspan(parameter.offset(), ElementsOf(parameter));
    }
  }
  CHECK(false) << "no parameter " << name;
  return {};
}

absl::Span<float> ModelRunner::gradient(const std::string& name) {
  for (int u = 0; u < units(); ++u) {
    for (const Parameter& parameter : specs_[u].parameters()) {
      if (parameter.name() != name) continue;
      return gradients(u).subspan(parameter.offset(), ElementsOf(parameter));
    }
  }
  CHECK(false) << "no parameter " << name;
  return {};
}

std::vector<float> ModelRunner::Logits() const {
  // They end the head's stash, rows padded to cache lines. The head is the last
  // unit before modules.
  const size_t head = specs_.size() - 1 - model_.num_nextn_predict_layers();
  const int64_t rows =
      options_.shape.sequences * options_.shape.sequence_length;
  const int64_t vocab = model_.vocab_size();
  const int64_t stride = FlatAligned(vocab);
  const DType dtype = DTypeOfElement(options_.shape.dtype);
  const int64_t bytes = rows * stride * static_cast<int64_t>(DTypeBytes(dtype));
  const Tensor padded(static_cast<char*>(stash_[head].get()) +
                          specs_[head].stash_bytes() - bytes,
                      dtype, {rows, stride});
  std::vector<float> logits(rows * vocab);
  Copy(device_, {.x = padded.Slice(1, 0, vocab),
                 .y = Tensor(logits.data(), DType::kF32, {rows, vocab})});
  CHECK_OK(device_.Synchronize());
  return logits;
}

}  // namespace troupe
