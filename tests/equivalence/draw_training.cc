#include "tests/equivalence/draw_training.h"

#include <algorithm>
#include <initializer_list>
#include <string>

#include "proto/plan.pb.h"
#include "proto/plan/lora.h"
#include "proto/plan/model.h"
#include "proto/plan/precision.h"
#include "tests/equivalence/small_job.h"
#include "tests/equivalence/tensor_job.h"
#include "tests/graphs/skip_graph.h"

namespace troupe {
namespace {

// The model and how it is trained.
JobSpec DrawModel(Dice& dice) {
  JobSpec job = TensorJob(
      {.architecture = dice.OneOf<const char*>(
           {"gpt2", "gpt_neox", "llama", "mistral", "qwen2", "qwen3"}),
       .tied = dice.Even(),
       .dropout = dice.Even() ? 0.1 : 0,
       .key_value_heads = dice.OneOf({2, 2, 2, 3})});
  job.mutable_model()->set_num_hidden_layers(kDrawnLayers);
  TrainingSpec& training = *job.mutable_training();
  training.set_micro_batch_size(1);
  training.set_global_batch_size(dice.OneOf({8, 12}));
  training.set_gradient_clipping(dice.OneOf({0.0, 0.5, 1.0}));
  training.set_validate_every(dice.OneOf({0, 5}));
  training.set_precision(
      dice.OneOf<const char*>({"f32", "f32", "fp16", "bf16"}));
  training.set_gradient_precision(
      dice.OneOf<const char*>({"f32", "parameters"}));
  // At the scale that jobs begin with, 65536, a part of a gradient's sum may
  // leave the range of fp16, and be a step left out, in one order of the sum
  // and not in another.
  if (ComputeType(training) == F16 && GradientType(training) == F16) {
    training.set_loss_scale(1024);
  }
  job.mutable_checkpoint()->set_directory("of who trains it");
  return job;
}

// Of a stream of its own: half of the draws of Llama and its relatives in f32
// have experts in place of MLPs. (In fewer bits a rounding may change what a
// token chooses, and the loss with it.)
void DrawExperts(uint64_t seed, int number, JobSpec& job) {
  Dice dice(seed ^ 0x65787072, number);
  ModelSpec& model = *job.mutable_model();
  const ModelSpec drawn = model;
  const bool mixtral =
      drawn.architecture() == "llama" || drawn.architecture() == "mistral";
  const bool may = mixtral || drawn.architecture() == "qwen2" ||
                   drawn.architecture() == "qwen3";
  if (!may || ComputeType(job.training()) != F32 || dice.Even()) return;
  model = TensorJob({.architecture = mixtral ? "mixtral" : "qwen3_moe",
                     .tied = drawn.tie_word_embeddings(),
                     .key_value_heads = drawn.num_key_value_heads()})
              .model();
  model.set_num_hidden_layers(drawn.num_hidden_layers());
}

// Of a stream of its own: half of the draws with experts have latents and
// modules that predict further tokens in place of as many blocks.
void DrawModules(uint64_t seed, int number, JobSpec& job) {
  Dice dice(seed ^ 0x6d6f6475, number);
  ModelSpec& model = *job.mutable_model();
  if (model.num_experts() == 0 || dice.Even()) return;
  const int units = model.num_hidden_layers();
  model = TensorJob({.architecture = "deepseek_v3",
                     .tied = model.tie_word_embeddings()})
              .model();
  model.mutable_experts()->set_balance("none");
  model.set_num_nextn_predict_layers(dice.OneOf({1, 1, 2}));
  model.set_num_hidden_layers(units - model.num_nextn_predict_layers());
}

// Of a stream of its own: a third of the draws isolate documents.
void DrawDocuments(uint64_t seed, int number, JobSpec& job) {
  Dice dice(seed ^ 0x646f6373, number);
  if (dice.Below(3) == 0) job = IsolatingDocuments(job);
}

// Of a stream of its own: half of the draws of GPT-2 are a graph with a skip
// (tests/graphs/skip_graph.h) of the same sizes.
void DrawSkip(uint64_t seed, int number, JobSpec& job) {
  Dice dice(seed ^ 0x736b6970, number);
  const ModelSpec drawn = job.model();
  if (drawn.architecture() != "gpt2" || dice.Even()) return;
  *job.mutable_model() =
      SkipModel({.blocks = kDrawnLayers,
                 .hidden = static_cast<int>(drawn.hidden_size()),
                 .heads = drawn.num_attention_heads(),
                 .intermediate = static_cast<int>(drawn.intermediate_size()),
                 .vocabulary = static_cast<int>(drawn.vocab_size()),
                 .positions = static_cast<int>(drawn.max_position_embeddings()),
                 .tied = drawn.tie_word_embeddings()});
}

// Of a stream of its own: half of all draws freeze something, from one tensor
// of every block to all but norms.
void DrawFreeze(uint64_t seed, int number, JobSpec& job) {
  Dice dice(seed ^ 0x66726565, number);
  if (dice.Even() || IsGraph(job.model())) return;  // names of families
  const std::string embedding =
      job.model().architecture() == "gpt2" ? "*.wte.*" : "*.embed_*";
  TrainingSpec& training = *job.mutable_training();
  const auto freeze = [&training](std::initializer_list<std::string> patterns) {
    for (const std::string& pattern : patterns) training.add_freeze(pattern);
  };
  switch (dice.Below(8)) {
    case 0:
      return freeze({embedding});
    case 1:
      return freeze({"*.0.*", embedding});
    case 2:
      return freeze({"*.0.*", "*.1.*", "*.2.*", "*.3.*", embedding});
    case 3:
      return freeze({"*.?.*", embedding});
    case 4:
      return freeze({"*.mlp.*"});
    case 5:
      return freeze({"*att*n*", "*.4.*"});
    case 6:
      return freeze({"*.mlp.*", "*att*n.*", embedding});
    default:
      return freeze({"*.weight"});
  }
}

// Of a stream of its own: a quarter of the draws of families train adapters, of
// all layers or of some, in place of the model.
void DrawAdapters(uint64_t seed, int number, JobSpec& job) {
  Dice dice(seed ^ 0x6c6f7261, number);
  if (dice.Below(4) > 0 || IsGraph(job.model())) return;
  TrainingSpec& training = *job.mutable_training();
  training.clear_freeze();  // it may leave nothing to train
  LoraSpec& lora = *training.mutable_lora();
  lora.set_rank(dice.OneOf({1, 3, 8}));
  lora.set_alpha(8);
  lora.set_rank_stabilized(dice.Even());
  if (dice.Even()) lora.set_dropout(0.1);
  lora.add_modules(dice.OneOf<const char*>(
      {kAllLinear, kAllLinear, "*att*n*", "*.1.*", "*.3.*"}));
}

// Of a stream of its own: half of all draws have groups in the optimizer, whose
// rules keep two states of each element, one or none. (Not Lion: where its sum
// is all but zero, a rounding changes the sign of a whole update.)
void DrawGroups(uint64_t seed, int number, JobSpec& job) {
  Dice dice(seed ^ 0x67726f75, number);
  if (dice.Even() || IsGraph(job.model())) return;  // names of families
  const auto add = [&job, &dice](const std::string& match) {
    OptimizerGroup& group = *job.mutable_optimizer()->add_groups();
    group.add_match(match);
    group.set_lr_scale(dice.OneOf({0.5, 2.0}));
    if (dice.Even()) group.set_weight_decay(dice.OneOf({0.0, 0.2}));
    if (dice.Even()) return;
    group.set_name("sgd");
    group.set_momentum(dice.OneOf({0.0, 0.9}));
  };
  add("*.weight");
  if (dice.Even() && job.model().num_experts() == 0) add("*.mlp.*");
  add(job.model().architecture() == "gpt2" ? "*.h.1.*" : "*.1.*");
}

// Of a stream of its own: a third of the draws without groups train matrices of
// blocks by Muon. (In fewer bits its step makes much of what is rounding; in
// f32 small steps keep that small.)
void DrawMuon(uint64_t seed, int number, JobSpec& job) {
  Dice dice(seed ^ 0x6d756f6e, number);
  const bool may = ComputeType(job.training()) == F32 &&
                   job.model().num_experts() == 0 && !IsGraph(job.model()) &&
                   !job.training().has_lora() &&
                   job.optimizer().groups().empty() &&
                   job.model().architecture() != "gpt2" &&
                   job.model().architecture() != "gpt_neox";
  if (!may || dice.Below(3) > 0) return;
  OptimizerGroup& muon = *job.mutable_optimizer()->add_groups();
  muon.set_name("muon");
  muon.set_lr_scale(0.25);
  muon.add_match("*.mlp.*.weight");
  if (dice.Even()) muon.add_match("*.self_attn.*_proj.weight");
}

}  // namespace

JobSpec DrawTraining(uint64_t seed, int number, Dice& dice) {
  JobSpec job = DrawModel(dice);
  DrawExperts(seed, number, job);
  DrawModules(seed, number, job);
  DrawSkip(seed, number, job);
  DrawDocuments(seed, number, job);
  DrawFreeze(seed, number, job);
  DrawAdapters(seed, number, job);
  DrawGroups(seed, number, job);
  DrawMuon(seed, number, job);
  return job;
}

bool TrainsMatrices(const JobSpec& job) {
  const auto& groups = job.optimizer().groups();
  return std::any_of(
      groups.begin(), groups.end(),
      [](const OptimizerGroup& group) { return group.name() == "muon"; });
}

}  // namespace troupe
