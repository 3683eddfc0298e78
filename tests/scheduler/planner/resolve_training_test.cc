#include "scheduler/planner/resolve_training.h"

#include <cmath>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "scheduler/planner/resolve_optimizer.h"
#include "tests/scheduler/example_job.h"

namespace troupe {
namespace {

using ::testing::StartsWith;

absl::Status Resolve(JobSpec& job) {
  for (const auto part :
       {ResolveTraining, ResolveOptimizer, ResolveLrScheduler}) {
    const absl::Status status = part(job);
    if (!status.ok()) return status;
  }
  return CheckPlanLength(job);
}

TEST(ResolveTraining, SgdHasItsOwnDefaults) {
  JobSpec job = ExampleJob({});
  job.mutable_optimizer()->set_name("sgd");
  ASSERT_TRUE(Resolve(job).ok());
  EXPECT_EQ(job.optimizer().weight_decay(), 0);
  EXPECT_EQ(job.optimizer().momentum(), 0);
  EXPECT_FALSE(job.optimizer().nesterov());
}

TEST(ResolveTraining, WsdDecaysOverATenth) {
  JobSpec job = ExampleJob({});
  job.mutable_training()->set_steps(300);
  job.mutable_lr_scheduler()->set_name("wsd");
  ASSERT_TRUE(Resolve(job).ok());
  EXPECT_EQ(job.lr_scheduler().decay_steps(), 30);
}

TEST(ResolveTraining, WsdDecayFitsBehindTheWarmup) {
  JobSpec job = ExampleJob({});
  job.mutable_training()->set_steps(300);
  job.mutable_lr_scheduler()->set_name("wsd");
  job.mutable_lr_scheduler()->set_warmup_steps(290);
  ASSERT_TRUE(Resolve(job).ok());
  EXPECT_EQ(job.lr_scheduler().decay_steps(), 10);
}

TEST(ResolveTraining, AJobMayEndWithinItsWarmup) {
  for (const char* name : {"cosine", "linear", "constant", "wsd"}) {
    JobSpec job = ExampleJob({});
    job.mutable_training()->set_steps(3);
    job.mutable_lr_scheduler()->set_name(name);
    job.mutable_lr_scheduler()->set_warmup_steps(20);
    ASSERT_TRUE(Resolve(job).ok()) << name;
    EXPECT_EQ(job.lr_scheduler().decay_steps(), 0);
  }
}

struct Case {
  void (*spoil)(JobSpec& job);
  const char* message;
};

void ExpectRefused(const JobSpec& good, const Case& c) {
  JobSpec job = good;
  c.spoil(job);
  const absl::Status status = Resolve(job);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << c.message;
  EXPECT_THAT(std::string(status.message()), StartsWith(c.message));
}

TEST(ResolveTraining, BatchesDivide) {
  JobSpec job = ExampleJob({});
  job.mutable_training()->set_global_batch_size(32);
  job.mutable_training()->set_micro_batch_size(4);
  const Case cases[] = {
      {[](JobSpec& j) { j.mutable_parallelism()->set_data(3); },
       "parallelism.data: 3 does not divide training.global_batch_size 32 / "
       "training.micro_batch_size 4 = 8 micro-batches; use 1, 2, 4 or 8"},
      {[](JobSpec& j) { j.mutable_parallelism()->set_data(16); },
       "parallelism.data: 16 does not divide"},
      {[](JobSpec& j) { j.mutable_training()->set_micro_batch_size(5); },
       "training.micro_batch_size: 5 does not divide "
       "training.global_batch_size 32; use 1, 2, 4, 8, 16 or 32"},
      {[](JobSpec& j) { j.mutable_training()->set_micro_batch_size(64); },
       "training.micro_batch_size: 64 does not divide"},
      {[](JobSpec& j) { j.mutable_training()->set_micro_batch_size(0); },
       "training.micro_batch_size: 0 is out of range"},
      {[](JobSpec& j) { j.mutable_training()->clear_micro_batch_size(); },
       "training.micro_batch_size: is missing"},
      {[](JobSpec& j) { j.mutable_training()->set_global_batch_size(-8); },
       "training.global_batch_size: -8 is out of range"},
      {[](JobSpec& j) { j.mutable_training()->clear_global_batch_size(); },
       "training.global_batch_size: is missing"},
      {[](JobSpec& j) {
         j.mutable_training()->set_global_batch_size(1 << 20);
         j.mutable_training()->set_micro_batch_size(1);
       },
       "training.micro_batch_size: 1 makes 1048576 micro-batches of "
       "training.global_batch_size 1048576; a model of 4 units allows 65536"},
  };
  for (const Case& c : cases) ExpectRefused(job, c);
}

const Case kRecipes[] = {
    {[](JobSpec& j) { j.mutable_training()->set_steps(0); },
     "training.steps: 0 is out of range"},
    {[](JobSpec& j) { j.mutable_training()->set_sequence_length(9); },
     "training.sequence_length: 9 is not within "
     "model.max_position_embeddings 8; use 1 to 8"},
    {[](JobSpec& j) { j.mutable_training()->set_sequence_length(0); },
     "training.sequence_length: 0 is not within"},
    {[](JobSpec& j) { j.mutable_training()->set_stop_after(-1); },
     "training.stop_after: -1 is out of range"},
    {[](JobSpec& j) { j.mutable_training()->set_stop_after(1 << 30); },
     "training.stop_after: 1073741824 is out of range"},
    {[](JobSpec& j) { j.mutable_training()->set_precision("fp32"); },
     "training.precision: there is no \"fp32\"; use f32, bf16 or fp16; did "
     "you mean"},
    {[](JobSpec& j) { j.mutable_training()->set_gradient_precision("bf16"); },
     "training.gradient_precision: there is no \"bf16\"; use f32 or "
     "parameters"},
    {[](JobSpec& j) { j.mutable_training()->set_loss_scale(1024); },
     "training.loss_scale: is for fp16, not f32; leave it out"},
    {[](JobSpec& j) {
       j.mutable_training()->set_precision("fp16");
       j.mutable_training()->set_loss_scale(0);
     },
     "training.loss_scale: 0 is out of range; use a number from 1e-30 to "
     "1e+30"},
    {[](JobSpec& j) {
       j.mutable_training()->set_precision("fp16");
       j.mutable_training()->set_loss_scale(1e-300);
     },
     "training.loss_scale: 1e-300 is out of range"},
    {[](JobSpec& j) {
       j.mutable_training()->set_precision("fp16");
       j.mutable_training()->set_loss_scale(NAN);
     },
     "training.loss_scale: nan is out of range"},
    {[](JobSpec& j) {
       j.mutable_training()->set_precision("fp16");
       j.mutable_parallelism()->set_pipeline(2);
       j.mutable_parallelism()->set_pipeline_schedule("pipedream");
     },
     "training.precision: fp16 leaves out updates whose gradients overflow on "
     "any rank, and pipedream never stops to ask all of them; use bf16"},
    {[](JobSpec& j) { j.mutable_training()->set_dropout(1); },
     "training.dropout: 1 is out of range"},
    {[](JobSpec& j) { j.mutable_training()->set_gradient_clipping(NAN); },
     "training.gradient_clipping: nan is out of range"},
    {[](JobSpec& j) { j.mutable_training()->set_validate_every(-1); },
     "training.validate_every: -1 is out of range"},
    {[](JobSpec& j) { j.mutable_training()->set_validate_every(50); },
     "training.validate_every: 50 needs data.validation_fraction above 0"},
    {[](JobSpec& j) {
       j.mutable_data()->set_validation_fraction(0.1);
       j.mutable_training()->set_validate_every(50);
       j.mutable_training()->set_validation_sequences(1 << 20);
     },
     "training.validation_sequences: 1048576 is too many at once"},
    {[](JobSpec& j) { j.mutable_optimizer()->set_name("adam"); },
     "optimizer.name: there is no \"adam\"; use adafactor, adamw, lion, muon "
     "or sgd; did "
     "you "
     "mean "
     "\"adamw\"?"},
    {[](JobSpec& j) { j.mutable_optimizer()->set_lr(0); },
     "optimizer.lr: 0 is out of range; use a number above 0"},
    {[](JobSpec& j) { j.mutable_optimizer()->set_lr(INFINITY); },
     "optimizer.lr: inf is out of range"},
    {[](JobSpec& j) { j.mutable_optimizer()->add_betas(0.9); },
     "optimizer.betas: 1 numbers; use two"},
    {[](JobSpec& j) {
       j.mutable_optimizer()->add_betas(0.9);
       j.mutable_optimizer()->add_betas(1);
     },
     "optimizer.betas: 1 is out of range"},
    {[](JobSpec& j) { j.mutable_optimizer()->set_eps(0); },
     "optimizer.eps: 0 is out of range"},
    {[](JobSpec& j) { j.mutable_optimizer()->set_weight_decay(-0.1); },
     "optimizer.weight_decay: -0.1 is out of range"},
    {[](JobSpec& j) { j.mutable_optimizer()->set_momentum(0.9); },
     "optimizer.momentum: is for sgd"},
    {[](JobSpec& j) {
       j.mutable_optimizer()->set_name("sgd");
       j.mutable_optimizer()->set_nesterov(true);
     },
     "optimizer.nesterov: needs optimizer.momentum above 0"},
    {[](JobSpec& j) {
       j.mutable_optimizer()->set_name("sgd");
       j.mutable_optimizer()->add_betas(0.9);
       j.mutable_optimizer()->add_betas(0.99);
     },
     "optimizer.betas: is for adamw"},
    {[](JobSpec& j) {
       j.mutable_optimizer()->set_name("sgd");
       j.mutable_optimizer()->set_eps(1e-6);
     },
     "optimizer.eps: is for adamw"},
    {[](JobSpec& j) { j.mutable_lr_scheduler()->set_name("cosin"); },
     "lr_scheduler.name: there is no \"cosin\"; use cosine, linear, "
     "constant or wsd; did you mean \"cosine\"?"},
    {[](JobSpec& j) { j.mutable_lr_scheduler()->set_warmup_steps(-1); },
     "lr_scheduler.warmup_steps: -1 is out of range; use 0 to "},
    {[](JobSpec& j) {
       j.mutable_lr_scheduler()->set_name("cosine");
       j.mutable_lr_scheduler()->set_min_lr(1);
     },
     "lr_scheduler.min_lr: 1 is out of range; use a number from 0 to 0.001"},
    {[](JobSpec& j) { j.mutable_lr_scheduler()->set_min_lr(1e-4); },
     "lr_scheduler.min_lr: constant never decays"},
    {[](JobSpec& j) { j.mutable_lr_scheduler()->set_decay_steps(2); },
     "lr_scheduler.decay_steps: is for wsd, not constant"},
    {[](JobSpec& j) {
       j.mutable_lr_scheduler()->set_name("wsd");
       j.mutable_lr_scheduler()->set_warmup_steps(6);
       j.mutable_lr_scheduler()->set_decay_steps(5);
     },
     "lr_scheduler.decay_steps: 5 is out of range; use 0 to 4"},
};

TEST(ResolveTraining, RefusesARecipeThatCannotBe) {
  for (const Case& c : kRecipes) ExpectRefused(ExampleJob({}), c);
}

TEST(ResolveTraining, SequencesAreNoLongerThanTheWindow) {
  JobSpec job = ExampleJob({});
  ModelSpec& model = *job.mutable_model();
  model.set_architecture("mistral");
  model.clear_layer_norm_epsilon();
  model.set_sliding_window(5);
  job.mutable_training()->set_sequence_length(6);
  EXPECT_EQ(Resolve(job).message(),
            "training.sequence_length: 6 is not within model.sliding_window "
            "5; use 1 to 5");
  job.mutable_training()->clear_sequence_length();
  ASSERT_TRUE(Resolve(job).ok()) << Resolve(job);
  EXPECT_EQ(job.training().sequence_length(), 5);
}

TEST(ResolveTraining, RefusesMicroBatchesTooLargeToCount) {
  JobSpec job = ExampleJob({});
  job.mutable_model()->set_max_position_embeddings(1 << 20);
  job.mutable_training()->set_global_batch_size(1 << 10);
  job.mutable_training()->set_micro_batch_size(1 << 10);
  EXPECT_THAT(std::string(Resolve(job).message()),
              StartsWith("training.micro_batch_size: 1024 x "
                         "training.sequence_length 1048576 = 1073741824 "
                         "tokens at once; use at most 128"));
}

}  // namespace
}  // namespace troupe
