#include "tests/equivalence/plan_matrix.h"

#include <initializer_list>

#include "absl/strings/str_cat.h"
#include "proto/base/philox.h"
#include "proto/base/status.h"
#include "proto/cluster.pb.h"
#include "proto/plan.pb.h"
#include "proto/plan/expert_ranks.h"
#include "proto/plan/lora.h"
#include "proto/plan/model.h"
#include "proto/plan/precision.h"
#include "proto/plan/ranks_needed.h"
#include "proto/plan/replica_share.h"
#include "proto/plan/sharing.h"
#include "scheduler/pipelines/pipelines.h"
#include "tests/equivalence/cluster_of_threads.h"
#include "tests/equivalence/plan_words.h"
#include "tests/equivalence/small_job.h"
#include "tests/equivalence/tensor_job.h"
#include "tests/graphs/skip_graph.h"

namespace troupe {
namespace {

constexpr int kLayers = 6;  // eight units
constexpr int kRanksMax = 8;

class Dice {
 public:
  Dice(uint64_t seed, int number)
      : stream_{.seed = seed,
                .purpose = RandomPurpose::kSampling,
                .site = static_cast<uint32_t>(number)} {}

  // One of 0 to count - 1.
  int Below(int count) {
    return static_cast<int>(PhiloxUint32(stream_, thrown_++) % count);
  }
  bool Even() { return Below(2) == 0; }
  // What stands there twice comes twice as often.
  template <typename T>
  T OneOf(std::initializer_list<T> values) {
    return *(values.begin() + Below(static_cast<int>(values.size())));
  }

 private:
  const PhiloxStream stream_;
  uint64_t thrown_ = 0;
};

// The model and its training, which all cuts share.
JobSpec DrawTraining(Dice& dice) {
  JobSpec job = TensorJob(
      {.architecture = dice.OneOf<const char*>(
           {"gpt2", "gpt_neox", "llama", "mistral", "qwen2", "qwen3"}),
       .tied = dice.Even(),
       .dropout = dice.Even() ? 0.1 : 0,
       .key_value_heads = dice.OneOf({2, 2, 2, 3})});
  job.mutable_model()->set_num_hidden_layers(kLayers);
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
      SkipModel({.blocks = kLayers,
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

void DrawPipeline(Dice& dice, ParallelismSpec& parallelism) {
  const std::vector<Pipeline>& all = Pipelines();
  const Pipeline& schedule = all[dice.Below(static_cast<int>(all.size()))];
  parallelism.set_pipeline(dice.OneOf({1, 2, 2, 4}));
  parallelism.set_pipeline_schedule(std::string(schedule.name));
  parallelism.clear_virtual_stages();
  if (schedule.default_virtual_stages > 1) {
    parallelism.set_virtual_stages(dice.OneOf({2, 2, 2, 3}));
  }
  // Buckets of a few kilobytes, so that there are several.
  parallelism.set_bucket_megabytes(0.02);
}

// Of a stream of its own: half of the draws whose replicas may differ split
// their micro-batches otherwise than evenly, sums and all.
void DrawSplit(uint64_t seed, int number, JobSpec& cut) {
  Dice dice(seed ^ 0x73706c69, number);
  ParallelismSpec& parallelism = *cut.mutable_parallelism();
  const TrainingSpec& training = cut.training();
  const int count = training.global_batch_size() / training.micro_batch_size() /
                    parallelism.data();
  const bool may = parallelism.data() > 1 && count > 1 &&
                   training.global_batch_size() %
                           (training.micro_batch_size() * parallelism.data()) ==
                       0;
  if (!may || parallelism.zero() > 1 || dice.Even()) return;
  for (int d = 0; d < parallelism.data(); ++d) {
    parallelism.add_micro_batches(count);
  }
  // From one neighbour to the other.
  auto& counts = *parallelism.mutable_micro_batches();
  const int moved = 1 + dice.Below(count - 1);
  const int from = dice.Below(parallelism.data());
  counts[from] -= moved;
  counts[(from + 1) % parallelism.data()] += moved;
}

// Of a stream of its own: most cuts of models with experts share them among
// ranks of data, context and tensor, with room for all rows or for fewer.
void DrawExpertAxis(uint64_t seed, int number, JobSpec& cut) {
  Dice dice(seed ^ 0x65617869, number);
  ParallelismSpec& parallelism = *cut.mutable_parallelism();
  if (cut.model().num_experts() == 0 || dice.Below(4) == 0) return;
  const int experts = cut.model().num_experts();
  const bool whole = parallelism.sequence_parallel() && dice.Even();
  if (whole) parallelism.set_expert_tensor(1);
  std::vector<int> sizes = ExpertSizes(parallelism);
  std::erase_if(sizes, [&](int ranks) { return experts % ranks != 0; });
  parallelism.clear_expert_tensor();
  // Numbers of micro-batches are those of more replicas.
  if (sizes.empty() || !parallelism.micro_batches().empty()) return;
  const int ranks = sizes[dice.Below(static_cast<int>(sizes.size()))];
  parallelism.set_expert(ranks);
  if (whole) parallelism.set_expert_tensor(1);
  if (dice.Even()) {
    parallelism.set_expert_slack(dice.OneOf<double>({1, 1.5, ranks / 1.25}));
  }
}

void DrawZero(Dice& dice, ParallelismSpec& parallelism) {
  parallelism.set_zero(dice.Below(4));
  const int alike = parallelism.data() * parallelism.context();
  if (parallelism.zero() > 0 && alike > 1 && dice.Even()) {
    parallelism.set_zero_size(dice.OneOf({1, 2, parallelism.context(), alike}));
  }
  if (parallelism.zero() == 3) {
    parallelism.set_reshard_after_forward(dice.Even());
  }
}

void DrawRecompute(Dice& dice, RecomputeSpec& recompute) {
  const std::string mode = dice.OneOf<const char*>(
      {"none", "none", "selective", "full", "units", "auto"});
  if (mode != "units") return recompute.set_mode(mode);
  for (int unit = 1; unit <= kLayers; ++unit) {
    switch (dice.Below(3)) {
      case 0:
        recompute.add_units(unit);
        break;
      case 1:
        recompute.add_selective_units(unit);
        break;
      default:
        break;
    }
  }
  if (recompute.units().empty() && recompute.selective_units().empty()) {
    recompute.add_units(kLayers);
  }
  recompute.clear_mode();
}

void DrawTiers(Dice& dice, MemorySpec& memory) {
  memory.set_optimizer(dice.OneOf<const char*>({"device", "host", "nvme"}));
  memory.set_parameters(dice.OneOf<const char*>({"device", "host", "nvme"}));
  memory.set_gradients(dice.OneOf<const char*>({"device", "host"}));
  memory.set_activations(dice.OneOf<const char*>({"device", "host", "nvme"}));
  const bool below = memory.parameters() != "device" ||
                     memory.gradients() != "device" ||
                     memory.activations() != "device";
  if (!below || dice.Even()) return;
  // From so few bytes that nothing stays to so many that all does.
  memory.set_chunk_megabytes(dice.OneOf<const char*>({"auto", "auto", "0.02"}));
  memory.set_device_bytes(int64_t{1} << (17 + dice.Below(5)));
}

// Of a stream of its own: half of the draws whose ranks share units by columns
// share some of them, or all, by the sequences of a micro-batch.
void DrawStrategies(uint64_t seed, int number, JobSpec& cut) {
  Dice dice(seed ^ 0x73747261, number);
  ParallelismSpec& parallelism = *cut.mutable_parallelism();
  const int ranks = parallelism.tensor();
  const bool may = (ranks == 2 || ranks == 4) && parallelism.context() == 1 &&
                   !parallelism.has_tensor_method();
  if (!may || dice.Even()) return;
  parallelism.clear_zero_size();
  cut.mutable_training()->set_micro_batch_size(ranks);
  if (dice.Even()) {
    parallelism.clear_tensor();
    parallelism.set_sequence_parallel(false);
    parallelism.set_batch(ranks);
  }
  for (int count = dice.Below(3); count > 0; --count) {
    StrategySpec& strategy = *parallelism.add_strategies();
    if (dice.Even()) {
      strategy.set_batch(ranks);
    } else {
      strategy.set_tensor(ranks);
      strategy.set_sequence_parallel(dice.Even());
    }
    if (parallelism.pipeline() > 1 && dice.Even()) {
      strategy.set_stage(dice.Below(parallelism.pipeline()));
      continue;
    }
    switch (dice.Below(3)) {
      case 0:
        strategy.add_units("blocks");
        break;
      case 1:
        strategy.add_units("embedding");
        strategy.add_units("head");
        break;
      default:
        strategy.add_units(absl::StrCat(1 + dice.Below(kLayers)));
        break;
    }
  }
}

// As many ranks as there may be, and nothing beside: a square and its replica,
// two layers, or a cube.
void MakeBlocks(Dice& dice, JobSpec& cut) {
  ParallelismSpec& parallelism = *cut.mutable_parallelism();
  parallelism.set_tensor(kRanksMax);
  parallelism.set_tensor_method(dice.OneOf<const char*>({"2d", "2.5d", "3d"}));
  parallelism.set_sequence_parallel(false);
  parallelism.set_pipeline(1);
  parallelism.set_data(1);
  parallelism.set_context(1);
  parallelism.clear_context_method();
  parallelism.clear_ulysses_size();
  parallelism.clear_zero_size();
  parallelism.set_zero(dice.OneOf({0, 3}));
  parallelism.set_reshard_after_forward(dice.Even());
  cut.mutable_training()->set_micro_batch_size(4);
  if (parallelism.tensor_method() == "3d") return;
  if (parallelism.zero() == 0) parallelism.clear_reshard_after_forward();
  if (parallelism.tensor_method() == "2.5d") return;
  parallelism.set_tensor(kRanksMax / 2);
  parallelism.set_data(2);
}

JobSpec DrawCut(Dice& dice, const JobSpec& job) {
  JobSpec cut = job;
  ParallelismSpec& parallelism = *cut.mutable_parallelism();
  do {
    parallelism.set_tensor(dice.OneOf({1, 1, 2, 2, 3, 4}));
    parallelism.set_data(dice.OneOf({1, 2, 2, 3, 4}));
    parallelism.set_context(dice.OneOf({1, 1, 1, 2, 3, 4}));
    DrawPipeline(dice, parallelism);
  } while (RanksNeeded(cut) > kRanksMax);
  if (parallelism.context() > 1) {
    parallelism.set_context_method(dice.OneOf<const char*>(
        {"ulysses", "ring", "usp", "ring_self_attention"}));
  }
  if (parallelism.context_method() == "usp") parallelism.set_ulysses_size(2);
  parallelism.set_sequence_parallel(parallelism.tensor() > 1 && dice.Even());
  DrawZero(dice, parallelism);
  DrawRecompute(dice, *cut.mutable_memory()->mutable_recompute());
  DrawTiers(dice, *cut.mutable_memory());
  cut.mutable_training()->set_micro_batch_size(dice.OneOf({1, 1, 2}));
  cut.mutable_checkpoint()->set_background(dice.Even());
  if (dice.Below(8) == 0) MakeBlocks(dice, cut);
  const bool gathers =
      parallelism.zero() == 3 || parallelism.tensor_method() == "3d";
  if (gathers && dice.Even()) {
    cut.mutable_memory()->set_unsharded_bytes(int64_t{1}
                                              << (13 + dice.Below(8)));
  }
  return cut;
}

// Of a stream of its own: a third of the cuts in which each replica has whole
// units, all of them trained, have servers of their own where there is room.
void DrawServers(uint64_t seed, int number, JobSpec& cut) {
  Dice dice(seed ^ 0x73657276, number);
  ParallelismSpec& parallelism = *cut.mutable_parallelism();
  const TrainingSpec& training = cut.training();
  const bool whole = parallelism.tensor() == 1 && parallelism.context() == 1 &&
                     parallelism.strategies().empty() &&
                     parallelism.batch() <= 1 && parallelism.expert() <= 1;
  const bool trained = training.freeze().empty() && !training.has_lora();
  if (!whole || !trained || dice.Below(3) > 0) return;
  parallelism.set_servers(dice.OneOf({1, 2, 2, 3}));
  if (RanksNeeded(cut) > kRanksMax) return parallelism.clear_servers();
  parallelism.clear_zero();
  parallelism.clear_zero_size();
  parallelism.clear_reshard_after_forward();
  cut.mutable_memory()->clear_unsharded_bytes();
}

bool IsAsynchronous(const JobSpec& job) {
  const auto schedule = FindPipeline(job.parallelism().pipeline_schedule());
  return schedule->asynchronous;
}

// Cut into the stages and replicas of another job only. A unit's stage says how
// old its weights are; what is computed again counts where stages are balanced.
JobSpec OnlyPipeline(const JobSpec& job, const JobSpec& cut) {
  JobSpec result = job;
  ParallelismSpec& parallelism = *result.mutable_parallelism();
  const ParallelismSpec& as = cut.parallelism();
  parallelism.set_pipeline(as.pipeline());
  // Ranks that share experts have one micro-batch together, and so a replica.
  parallelism.set_data(ReplicasOf(as));
  parallelism.set_pipeline_schedule(as.pipeline_schedule());
  const auto plan = CompileForThreads(cut, RanksNeeded(cut));
  if (plan.ok()) {
    for (const Stage& stage : plan->stages()) {
      parallelism.add_stages(stage.unit_count());
    }
  }
  result.mutable_training()->set_micro_batch_size(MicroBatchSequences(cut));
  return result;
}

}  // namespace

PlanDraw DrawPlan(uint64_t seed, int number) {
  Dice dice(seed, number);
  PlanDraw draw;
  draw.reference = DrawTraining(dice);
  DrawExperts(seed, number, draw.reference);
  DrawSkip(seed, number, draw.reference);
  DrawDocuments(seed, number, draw.reference);
  DrawFreeze(seed, number, draw.reference);
  DrawAdapters(seed, number, draw.reference);
  DrawGroups(seed, number, draw.reference);
  const int64_t steps = draw.reference.training().steps();
  JobSpec first = DrawCut(dice, draw.reference);
  DrawStrategies(seed, number, first);
  if (!IsAsynchronous(first)) DrawSplit(seed, number, first);
  DrawExpertAxis(seed, number, first);
  if (!IsAsynchronous(first)) DrawServers(seed, number, first);
  draw.name = absl::StrCat(TrainingText(draw.reference), " | ", CutText(first));
  if (IsAsynchronous(first)) {
    draw.legs = {{first, steps}};
    draw.reference = OnlyPipeline(draw.reference, first);
    return draw;
  }
  // Where it is validated, so that the reference is too: a run's last step is.
  const int64_t every = draw.reference.training().validate_every();
  const int64_t until =
      every > 0 ? every * (1 + dice.Below(static_cast<int>(steps / every - 1)))
                : 1 + dice.Below(static_cast<int>(steps - 1));
  JobSpec second = DrawCut(dice, draw.reference);
  if (IsAsynchronous(second) || dice.Even()) {
    draw.legs = {{first, steps}};
    return draw;
  }
  DrawStrategies(seed ^ 1, number, second);
  DrawSplit(seed ^ 1, number, second);
  DrawExpertAxis(seed ^ 1, number, second);
  DrawServers(seed ^ 1, number, second);
  draw.legs = {{first, until}, {second, steps}};
  absl::StrAppend(&draw.name, " | from step ", until, ": ", CutText(second));
  return draw;
}

absl::Status PlanDraw::Refusal() const {
  for (const Leg& leg : legs) {
    RETURN_IF_ERROR(CompileForThreads(leg.job, RanksNeeded(leg.job)).status());
  }
  return absl::OkStatus();
}

std::string PlanDraw::precision() const {
  return PrecisionText(reference.training());
}

}  // namespace troupe
