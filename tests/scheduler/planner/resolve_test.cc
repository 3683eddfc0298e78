#include "scheduler/planner/resolve.h"

#include <cmath>
#include <functional>
#include <set>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/scheduler/example_job.h"

namespace troupe {
namespace {

using ::testing::StartsWith;

TEST(ResolveJob, FillsEveryDefault) {
  const JobSpec job = *ResolveJob(ExampleJob({.micro_batches = 4}));
  EXPECT_EQ(job.model().intermediate_size(), 64);
  EXPECT_EQ(job.model().layer_norm_epsilon(), 1e-5);
  EXPECT_EQ(job.model().initializer_range(), 0.02);
  EXPECT_TRUE(job.model().tie_word_embeddings());
  EXPECT_EQ(job.data().validation_fraction(), 0);
  EXPECT_EQ(job.training().sequence_length(), 8);
  EXPECT_EQ(job.training().precision(), "f32");
  EXPECT_EQ(job.training().seed(), 0);
  EXPECT_EQ(job.training().gradient_clipping(), 1.0);
  EXPECT_EQ(job.training().validation_sequences(), 32);
  EXPECT_EQ(job.optimizer().name(), "adamw");
  EXPECT_EQ(job.optimizer().betas(1), 0.95);
  EXPECT_EQ(job.optimizer().weight_decay(), 0.1);
  EXPECT_EQ(job.lr_scheduler().name(), "constant");
  EXPECT_EQ(job.checkpoint().keep(), 3);
}

TEST(ResolveJob, LeavesNoFieldUnset) {
  const JobSpec job = *ResolveJob(ExampleJob({}));
  // None means: balanced by cost; as many on each replica; no sequence is cut;
  // in one dimension; no experts are shared; found while training; nothing is
  // frozen; a lost worker ends it; all units are shared, and all parameters
  // trained, alike; one file; held back from it; by steps; nothing is chosen;
  // no adapters; no average is kept; rows of collectives are chosen by cost;
  // the optimizer is another than adafactor; no text is written; no
  // servers; one island; slices are even.
  const std::set<std::string> may_be_absent = {
      "communication", "context_method",  "decay_rate",    "elastic",
      "ema",           "epochs",          "eps1",          "eps2",
      "expert_slack",  "expert_tensor",   "freeze",        "groups",
      "lora",          "loss_scale",      "micro_batches", "mode",
      "islands",       "objective",       "outer",         "recovery",
      "sample",        "scale_parameter", "servers",       "sources",
      "stages",        "strategies",      "tensor_depth",  "tensor_method",
      "ulysses_size",  "validation",      "zero_weights"};
  const auto all_set = [&](const google::protobuf::Message& message) {
    const auto* descriptor = message.GetDescriptor();
    for (int i = 0; i < descriptor->field_count(); ++i) {
      const auto* field = descriptor->field(i);
      const bool set =
          field->is_repeated()
              ? message.GetReflection()->FieldSize(message, field) > 0
              : !field->has_presence() ||
                    message.GetReflection()->HasField(message, field);
      EXPECT_TRUE(set || may_be_absent.count(field->name()) > 0)
          << field->full_name();
    }
  };
  all_set(job);
  all_set(job.data());
  all_set(job.training());
  all_set(job.optimizer());
  all_set(job.lr_scheduler());
  all_set(job.parallelism());
  all_set(job.checkpoint());
}

TEST(ResolveJob, ResolvingAgainChangesNothing) {
  for (const char* optimizer : {"adamw", "sgd"}) {
    for (const char* scheduler : {"cosine", "linear", "constant", "wsd"}) {
      JobSpec job = ExampleJob({});
      job.mutable_optimizer()->set_name(optimizer);
      job.mutable_lr_scheduler()->set_name(scheduler);
      const auto once = ResolveJob(job);
      ASSERT_TRUE(once.ok()) << once.status();
      const auto twice = ResolveJob(*once);
      ASSERT_TRUE(twice.ok()) << twice.status();
      EXPECT_EQ(once->DebugString(), twice->DebugString());
    }
  }
}

TEST(ResolveJob, RefusesWithThePathAndTheWayOut) {
  struct Case {
    std::function<void(JobSpec&)> spoil;
    const char* message;
  };
  const Case cases[] = {
      {[](JobSpec& j) { j.clear_name(); }, "name: is missing"},
      {[](JobSpec& j) { j.set_name("a\nb"); }, "name: use at most 100"},
      {[](JobSpec& j) { j.set_name("1"); }, "name: \"1\" is how commands ask"},
      {[](JobSpec& j) { j.set_name("latest"); }, "name: \"latest\" is how"},
      {[](JobSpec& j) { j.mutable_model()->clear_architecture(); },
       "model.architecture: is missing; give gpt2, "},
      {[](JobSpec& j) { j.mutable_parallelism()->set_zero(4); },
       "parallelism.zero: "},
      {[](JobSpec& j) { j.mutable_parallelism()->set_zero_size(2); },
       "parallelism.zero_size: nothing is dealt over ranks with zero: 0"},
      {[](JobSpec& j) {
         j.mutable_parallelism()->set_zero(1);
         j.mutable_parallelism()->set_data(4);
         j.mutable_parallelism()->set_zero_size(3);
       },
       "parallelism.zero_size: 3 does not divide the 4 replicas"},
      {[](JobSpec& j) {
         j.mutable_parallelism()->set_zero(2);
         j.mutable_parallelism()->set_reshard_after_forward(true);
       },
       "parallelism.reshard_after_forward: is for zero: 3"},
      {[](JobSpec& j) {
         j.mutable_parallelism()->set_zero(1);
         j.mutable_parallelism()->set_pipeline_schedule("pipedream");
       },
       "parallelism.zero: 1 does not go with pipedream: each micro-batch"},
      {[](JobSpec& j) { j.mutable_model()->set_architecture("gtp2"); },
       "model.architecture: there is no \"gtp2\"; use gpt2, "},
      {[](JobSpec& j) { j.mutable_model()->clear_hidden_size(); },
       "model.hidden_size: is missing"},
      {[](JobSpec& j) { j.mutable_model()->set_num_hidden_layers(0); },
       "model.num_hidden_layers: 0 is out of range; use 1 to 4096"},
      {[](JobSpec& j) { j.mutable_model()->set_hidden_size(-16); },
       "model.hidden_size: -16 is out of range"},
      {[](JobSpec& j) { j.mutable_model()->set_hidden_size(1 << 30); },
       "model.hidden_size: 1073741824 is out of range"},
      {[](JobSpec& j) { j.mutable_model()->set_vocab_size(1 << 30); },
       "model.vocab_size: 1073741824 is out of range"},
      {[](JobSpec& j) { j.mutable_model()->set_layer_norm_epsilon(0); },
       "model.layer_norm_epsilon: 0 is out of range"},
      {[](JobSpec& j) { j.mutable_model()->set_initializer_range(NAN); },
       "model.initializer_range: nan is out of range"},
      {[](JobSpec& j) { j.mutable_model()->set_num_attention_heads(3); },
       "model.num_attention_heads: 3 does not divide model.hidden_size 16; "
       "use 1, 2, 4, 8 or 16"},
      {[](JobSpec& j) { j.mutable_data()->clear_tokens(); },
       "data.tokens: is missing; give a file made by `troupe data prepare`"},
      {[](JobSpec& j) { j.mutable_data()->set_validation_fraction(1.5); },
       "data.validation_fraction: 1.5 is out of range; use a number from 0 "
       "and below 1"},
      {[](JobSpec& j) { j.mutable_data()->add_sources(); },
       "data.tokens: is beside data.sources"},
      {[](JobSpec& j) {
         j.mutable_data()->clear_tokens();
         j.mutable_data()->add_sources()->set_tokens("a");
         j.mutable_data()->add_sources();
       },
       "data.sources[1].tokens: is missing"},
      {[](JobSpec& j) {
         j.mutable_data()->clear_tokens();
         j.mutable_data()->add_sources()->set_tokens("a");
         j.mutable_data()->mutable_sources(0)->set_weight(0);
       },
       "data.sources[0].weight: 0 is out of range"},
      {[](JobSpec& j) { j.mutable_data()->set_validation_blocks(8); },
       "data.validation_blocks: 8 needs data.validation_fraction"},
      {[](JobSpec& j) {
         j.mutable_data()->set_validation("v");
         j.mutable_data()->set_validation_fraction(0.5);
       },
       "data.validation: is beside data.validation_fraction"},
      {[](JobSpec& j) {
         j.mutable_model()->Clear();
         j.mutable_model()->set_architecture("synthetic");
         j.mutable_model()->set_units(1);
         j.mutable_model()->add_forward_us(1);
         j.mutable_data()->Clear();
         j.mutable_data()->set_isolate_documents(true);
       },
       "data.isolate_documents: a synthetic model reads no documents"},
      {[](JobSpec& j) {
         j.mutable_training()->clear_steps();
         j.mutable_training()->set_epochs(2);
       },
       "training.epochs: is turned into training.steps by `troupe`"},
      {[](JobSpec& j) { j.mutable_training()->set_epochs(2); },
       "training.epochs: is beside training.steps"},
      {[](JobSpec& j) { j.mutable_parallelism()->set_data(0); },
       "parallelism.data: 0 is out of range; use 1 to 131072"},
      {[](JobSpec& j) { j.mutable_parallelism()->set_bucket_megabytes(0); },
       "parallelism.bucket_megabytes: 0 is out of range"},
      {[](JobSpec& j) { j.mutable_training()->clear_steps(); },
       "training.steps: is missing"},
      {[](JobSpec& j) { j.mutable_optimizer()->clear_lr(); },
       "optimizer.lr: is missing"},
      {[](JobSpec& j) { j.mutable_checkpoint()->set_every(5); },
       "checkpoint.every: saving every 5 of 10 steps needs "
       "checkpoint.directory"},
      {[](JobSpec& j) { j.mutable_checkpoint()->set_resume("latest"); },
       "checkpoint.resume: latest looks in checkpoint.directory, which is"},
      {[](JobSpec& j) { j.mutable_checkpoint()->set_resume("auto"); },
       "checkpoint.resume: auto looks in checkpoint.directory, which is"},
      {[](JobSpec& j) { j.mutable_metrics(); },
       "metrics: there is no checkpoint.directory where they could be; give "
       "metrics.directory or metrics.tensorboard"},
      {[](JobSpec& j) { j.mutable_checkpoint()->set_keep(-1); },
       "checkpoint.keep: -1 is out of range"},
  };
  for (const Case& c : cases) {
    JobSpec job = ExampleJob({});
    c.spoil(job);
    const absl::Status status = ResolveJob(job).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << c.message;
    EXPECT_THAT(std::string(status.message()), StartsWith(c.message));
  }
}

// Also of a job that is resolved again.
TEST(Resolve, MetricsLieBesideCheckpoints) {
  struct Case {
    std::function<void(JobSpec&)> set;
    std::string directory;
    std::string tensorboard;
  };
  const Case cases[] = {
      {[](JobSpec&) {}, "", ""},
      {[](JobSpec& j) { j.mutable_checkpoint()->set_directory("/c"); }, "/c",
       ""},
      {[](JobSpec& j) {
         j.mutable_checkpoint()->set_directory("/c");
         j.mutable_metrics()->set_directory("/m");
       },
       "/m", ""},
      {[](JobSpec& j) {
         j.mutable_checkpoint()->set_directory("/c");
         j.mutable_metrics()->set_directory("");
       },
       "", ""},
      {[](JobSpec& j) { j.mutable_metrics()->set_directory(""); }, "", ""},
      {[](JobSpec& j) { j.mutable_metrics()->set_tensorboard("/t"); }, "",
       "/t"},
  };
  for (const Case& c : cases) {
    JobSpec job = ExampleJob({});
    c.set(job);
    for (int again = 0; again < 2; ++again) {
      const auto resolved = ResolveJob(job);
      ASSERT_TRUE(resolved.ok()) << resolved.status();
      EXPECT_TRUE(resolved->metrics().has_directory());
      EXPECT_EQ(resolved->metrics().directory(), c.directory);
      EXPECT_TRUE(resolved->metrics().has_tensorboard());
      EXPECT_EQ(resolved->metrics().tensorboard(), c.tensorboard);
      job = *resolved;
    }
  }
}

}  // namespace
}  // namespace troupe
