#include "scheduler/planner/resolve_evaluation.h"

#include <functional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "scheduler/planner/planner.h"
#include "scheduler/planner/resolve.h"
#include "tests/scheduler/example_job.h"

namespace troupe {
namespace {

using ::testing::StartsWith;

JobSpec Evaluation() {
  const JobSpec training = ExampleJob({.micro_batches = 4});
  JobSpec job;
  job.set_name("evaluation");
  job.set_evaluate(true);
  *job.mutable_model() = training.model();
  job.mutable_data()->set_validation("/v.tokens");
  job.mutable_training()->set_steps(3);
  job.mutable_training()->set_global_batch_size(8);
  job.mutable_training()->set_micro_batch_size(2);
  return job;
}

TEST(ResolveEvaluation, ValidatesABatchInEachStep) {
  const auto job = ResolveJob(Evaluation());
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->training().validate_every(), 1);
  EXPECT_EQ(job->training().validation_sequences(), 8);
  EXPECT_EQ(job->optimizer().name(), "none");
  EXPECT_EQ(job->data().tokens(), "");
  const auto again = ResolveJob(*job);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->SerializeAsString(), job->SerializeAsString());
  EXPECT_FALSE(ResolveJob(ExampleJob({}))->evaluate());
}

TEST(ResolveEvaluation, RefusesWhatIsOfTraining) {
  using Edit = std::function<void(JobSpec&)>;
  const std::vector<std::pair<Edit, std::string>> cases = {
      {[](JobSpec& j) { j.mutable_data()->set_tokens("/t"); }, "data.tokens"},
      {[](JobSpec& j) { j.mutable_data()->add_sources()->set_tokens("/t"); },
       "data.sources"},
      {[](JobSpec& j) { j.mutable_data()->set_validation_fraction(0.1); },
       "data.validation_fraction"},
      {[](JobSpec& j) { j.mutable_optimizer()->set_lr(1e-3); }, "optimizer.lr"},
      {[](JobSpec& j) { j.mutable_optimizer()->set_name("adamw"); },
       "optimizer.name"},
      {[](JobSpec& j) { j.mutable_optimizer()->add_groups()->add_match("*"); },
       "optimizer.groups"},
      {[](JobSpec& j) { j.mutable_lr_scheduler()->set_name("cosine"); },
       "lr_scheduler.name"},
      {[](JobSpec& j) { j.mutable_training()->set_dropout(0.1); },
       "training.dropout"},
      {[](JobSpec& j) { j.mutable_training()->add_freeze("*"); },
       "training.freeze"},
      {[](JobSpec& j) { j.mutable_training()->set_epochs(1); },
       "training.epochs"},
      {[](JobSpec& j) { j.mutable_training()->set_stop_after(1); },
       "training.stop_after"},
      {[](JobSpec& j) { j.mutable_training()->set_gradient_clipping(1); },
       "training.gradient_clipping"},
      {[](JobSpec& j) { j.mutable_training()->set_validate_every(2); },
       "training.validate_every"},
      {[](JobSpec& j) { j.mutable_checkpoint()->set_directory("/c"); },
       "checkpoint.directory"},
      {[](JobSpec& j) { j.mutable_checkpoint()->set_every(5); },
       "checkpoint.every"},
      {[](JobSpec& j) { j.mutable_recovery(); }, "recovery"},
      {[](JobSpec& j) { j.mutable_elastic(); }, "elastic"},
      {[](JobSpec& j) { j.mutable_memory()->set_optimizer("host"); },
       "memory.optimizer"},
      {[](JobSpec& j) {
         j.mutable_memory()->mutable_recompute()->set_mode("full");
       },
       "memory.recompute.mode"},
  };
  for (const auto& [edit, field] : cases) {
    JobSpec job = Evaluation();
    edit(job);
    const absl::Status refused = ResolveJob(job).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument) << field;
    EXPECT_EQ(refused.message(),
              field +
                  ": is of training, and with evaluate: true nothing is "
                  "trained; leave it out");
  }
}

TEST(ResolveEvaluation, SaysWhatIsMissingOrMakesNoSense) {
  using Edit = std::function<void(JobSpec&)>;
  const std::vector<std::pair<Edit, std::string>> cases = {
      {[](JobSpec& j) { j.mutable_data()->clear_validation(); },
       "data.validation: "},
      {[](JobSpec& j) { j.mutable_training()->clear_steps(); },
       "training.steps: is counted by `troupe`"},
      {[](JobSpec& j) { j.mutable_training()->clear_global_batch_size(); },
       "training.global_batch_size: "},
      {[](JobSpec& j) { j.mutable_checkpoint()->set_resume("latest"); },
       "checkpoint.resume: latest looks where the job saves"},
      {[](JobSpec& j) { j.mutable_training()->mutable_lora(); },
       "training.lora: new adapters change nothing"},
      {[](JobSpec& j) {
         j.mutable_checkpoint()->set_resume("/c/step-00000005");
         j.mutable_training()->mutable_lora()->set_adapter("/a");
       },
       "training.lora.adapter: is beside checkpoint.resume"},
      {[](JobSpec& j) { j.mutable_memory()->set_mode("auto"); },
       "memory: auto chooses"},
      {[](JobSpec& j) {
         j.mutable_model()->Clear();
         j.mutable_model()->set_architecture("synthetic");
       },
       "evaluate: a synthetic model has no loss"},
  };
  for (const auto& [edit, begin] : cases) {
    JobSpec job = Evaluation();
    edit(job);
    const absl::Status refused = ResolveJob(job).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(refused.message()), StartsWith(begin));
  }
}

// Less than training takes, in time and in memory, on workers as in a test.
TEST(ResolveEvaluation, SaysHowManySequencesHaveALossOfTheirOwn) {
  JobSpec job = Evaluation();
  EXPECT_FALSE(ResolveJob(job)->sequence_losses());
  job.set_sequence_losses(true);
  const auto resolved = ResolveJob(job);
  ASSERT_TRUE(resolved.ok()) << resolved.status();
  EXPECT_TRUE(resolved->sequence_losses());
  struct Limit {
    int64_t batch;
    int64_t steps;
    const char* message;
  };
  for (const Limit& limit :
       {Limit{(1 << 16) + 1, 1, "training.global_batch_size: 65537 is more "},
        Limit{8, 20'001, "training.global_batch_size: 8 makes 20001 steps"},
        Limit{1 << 16, 65, "sequence_losses: are at most 4194304 of a job"}}) {
    job.mutable_training()->set_global_batch_size(
        static_cast<int32_t>(limit.batch));
    job.mutable_training()->set_steps(limit.steps);
    const auto refused = ResolveJob(job);
    EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(refused.status().message().rfind(limit.message, 0), 0u)
        << refused.status();
    JobSpec without = job;
    without.set_sequence_losses(false);
    EXPECT_EQ(ResolveEvaluation(without), absl::OkStatus()) << limit.message;
  }
  JobSpec training = ExampleJob({});
  training.set_sequence_losses(true);
  EXPECT_EQ(ResolveJob(training).status().message(),
            "sequence_losses: are those of a job with evaluate: true; leave it "
            "out");
}

TEST(ResolveEvaluation, PlansForwardPassesAlone) {
  for (const int ranks : {1, 2}) {
    JobSpec job = Evaluation();
    job.mutable_parallelism()->set_data(ranks);
    const auto plan = CompilePlan(job, ExampleWorkers(ranks));
    ASSERT_TRUE(plan.ok()) << plan.status();
    const auto trains =
        CompilePlan(ExampleJob({.data = ranks, .micro_batches = 4 / ranks}),
                    ExampleWorkers(ranks));
    ASSERT_TRUE(trains.ok()) << trains.status();
    const double share =
        plan->prediction().step_seconds() / trains->prediction().step_seconds();
    EXPECT_GT(share, 0.1);
    EXPECT_LT(share, 0.5);
    EXPECT_LT(plan->prediction().ranks(0).peak_bytes(),
              trains->prediction().ranks(0).peak_bytes());
    for (const Role& role : plan->roles()) {
      ASSERT_EQ(role.programs_size(), 1);
      EXPECT_EQ(role.programs(0).kind(), Program::VALIDATE);
    }
  }
}

}  // namespace
}  // namespace troupe
