#include "tests/equivalence/plan_matrix.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "proto/cluster.pb.h"
#include "proto/plan.pb.h"
#include "proto/plan/precision.h"
#include "proto/plan/ranks_needed.h"
#include "scheduler/layouts/expert_ranks.h"
#include "scheduler/layouts/replicas.h"
#include "scheduler/pipelines/pipelines.h"
#include "tests/equivalence/cluster_of_threads.h"
#include "tests/equivalence/dice.h"
#include "tests/equivalence/draw_training.h"
#include "tests/equivalence/plan_words.h"

namespace troupe {
namespace {

constexpr int kRanksMax = 8;

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
  const bool weighs = parallelism.zero() > 0 && parallelism.data() > 1 &&
                      !parallelism.has_zero_size() &&
                      parallelism.expert() <= 1 && dice.Below(4) == 0;
  for (int r = 0; weighs && r < parallelism.data(); ++r) {
    parallelism.add_zero_weights(1 + dice.Below(4));
  }
  if (parallelism.zero() == 3) {
    parallelism.set_reshard_after_forward(dice.Even());
  }
}

void DrawRecompute(Dice& dice, RecomputeSpec& recompute) {
  const std::string mode = dice.OneOf<const char*>(
      {"none", "none", "selective", "full", "units", "auto"});
  if (mode != "units") return recompute.set_mode(mode);
  for (int unit = 1; unit <= kDrawnLayers; ++unit) {
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
    recompute.add_units(kDrawnLayers);
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
  // From a number of bytes with which nothing stays to one with which all does.
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
  parallelism.clear_zero_weights();
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
        strategy.add_units(absl::StrCat(1 + dice.Below(kDrawnLayers)));
        break;
    }
  }
}

// Of a stream of its own: most cuts with two ranks of tensor, and room for as
// many more, have these by the samples of a micro-batch, and share some units
// by samples over both axes.
void DrawSpan(uint64_t seed, int number, JobSpec& cut) {
  Dice dice(seed ^ 0x7370616e, number);
  ParallelismSpec& parallelism = *cut.mutable_parallelism();
  const bool may = parallelism.tensor() == 2 && parallelism.context() == 1 &&
                   !parallelism.has_tensor_method() &&
                   parallelism.strategies().empty() &&
                   2 * RanksNeeded(cut) <= kRanksMax;
  if (!may || dice.Below(3) == 0) return;
  parallelism.clear_zero_size();
  parallelism.clear_zero_weights();
  parallelism.set_batch(2);
  cut.mutable_training()->set_micro_batch_size(4);
  StrategySpec& strategy = *parallelism.add_strategies();
  strategy.set_batch(4);
  if (parallelism.pipeline() > 1 && dice.Even()) {
    strategy.set_stage(dice.Below(parallelism.pipeline()));
  } else {
    strategy.add_units(dice.OneOf<const char*>({"blocks", "1", "4"}));
  }
}

// A rule that changes whole matrices needs them whole, on the device.
void KeepMatricesWhole(JobSpec& cut) {
  ParallelismSpec& parallelism = *cut.mutable_parallelism();
  parallelism.clear_strategies();
  parallelism.clear_tensor_method();
  parallelism.clear_batch();
  parallelism.set_tensor(1);
  parallelism.set_sequence_parallel(false);
  if (parallelism.zero() < 3) parallelism.clear_reshard_after_forward();
  cut.mutable_memory()->set_optimizer("device");
  cut.mutable_memory()->set_gradients("device");
}

// Of a stream of its own: a third of the pipelines have stages that the job
// says, of any numbers of units.
void DrawStages(uint64_t seed, int number, JobSpec& cut) {
  Dice dice(seed ^ 0x73746167, number);
  ParallelismSpec& parallelism = *cut.mutable_parallelism();
  const auto schedule = FindPipeline(parallelism.pipeline_schedule());
  const int of_rank = parallelism.has_virtual_stages()
                          ? parallelism.virtual_stages()
                          : schedule->default_virtual_stages;
  const int stages = parallelism.pipeline() * of_rank;
  constexpr int kUnits = kDrawnLayers + 2;
  if (parallelism.pipeline() < 2 || stages > kUnits || dice.Below(3) > 0) {
    return;
  }
  std::vector<int> counts(stages, 1);
  for (int left = kUnits - stages; left > 0; --left) {
    ++counts[dice.Below(stages)];
  }
  for (const int count : counts) parallelism.add_stages(count);
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
  parallelism.clear_zero_weights();
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
  parallelism.clear_zero_weights();
  parallelism.clear_reshard_after_forward();
  cut.mutable_memory()->clear_unsharded_bytes();
}

bool IsAsynchronous(const JobSpec& job) {
  const auto schedule = FindPipeline(job.parallelism().pipeline_schedule());
  return schedule->asynchronous;
}

// What has streams of its own.
void DrawFurther(uint64_t seed, int number, JobSpec& cut) {
  DrawStrategies(seed, number, cut);
  DrawSpan(seed, number, cut);
  if (TrainsMatrices(cut)) KeepMatricesWhole(cut);
  if (!IsAsynchronous(cut)) DrawSplit(seed, number, cut);
  DrawExpertAxis(seed, number, cut);
  DrawStages(seed, number, cut);
}

// Of a stream of its own: half of the draws in f32 that may have Adafactor do.
// (In fewer bits gradients that are all but zero, such as those of the biases
// of keys, are roundings as large as steps.)
void DrawAdafactor(uint64_t seed, int number, PlanDraw& draw) {
  Dice dice(seed ^ 0x61646166, number);
  const bool may =
      ComputeType(draw.reference.training()) == F32 &&
      std::all_of(draw.legs.begin(), draw.legs.end(), [](const Leg& leg) {
        return leg.job.parallelism().tensor() <= 1 &&
               leg.job.memory().optimizer() == "device" &&
               leg.job.memory().gradients() == "device";
      });
  if (!may || dice.Even()) return;
  absl::StrAppend(&draw.name, " | adafactor");
  const auto make = [](JobSpec& job) {
    OptimizerSpec& optimizer = *job.mutable_optimizer();
    optimizer.clear_betas();
    optimizer.clear_eps();
    optimizer.set_name("adafactor");
    optimizer.set_eps1(1e-10);
  };
  make(draw.reference);
  for (Leg& leg : draw.legs) make(leg.job);
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

// With the rules that every plan can have.
PlanDraw DrawAnyPlan(uint64_t seed, int number) {
  Dice dice(seed, number);
  PlanDraw draw;
  draw.reference = DrawTraining(seed, number, dice);
  const int64_t steps = draw.reference.training().steps();
  JobSpec first = DrawCut(dice, draw.reference);
  DrawFurther(seed, number, first);
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
  DrawFurther(seed ^ 1, number, second);
  DrawServers(seed ^ 1, number, second);
  draw.legs = {{first, until}, {second, steps}};
  absl::StrAppend(&draw.name, " | from step ", until, ": ", CutText(second));
  return draw;
}

}  // namespace

PlanDraw DrawPlan(uint64_t seed, int number) {
  PlanDraw draw = DrawAnyPlan(seed, number);
  DrawAdafactor(seed, number, draw);
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
