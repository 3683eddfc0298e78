#include "scheduler/service/plan_compiler.h"

#include "gtest/gtest.h"
#include "proto/plan/worker_refusal.h"

namespace troupe {
namespace {

JobSpec Spec() {
  JobSpec spec;
  spec.set_name("small");
  spec.mutable_model()->set_architecture("gpt2");
  spec.mutable_model()->set_num_hidden_layers(2);
  spec.mutable_model()->set_hidden_size(32);
  spec.mutable_model()->set_num_attention_heads(2);
  spec.mutable_model()->set_vocab_size(256);
  spec.mutable_model()->set_max_position_embeddings(16);
  spec.mutable_data()->set_tokens("some.tokens");
  spec.mutable_training()->set_steps(3);
  spec.mutable_training()->set_global_batch_size(4);
  spec.mutable_training()->set_micro_batch_size(1);
  spec.mutable_optimizer()->set_lr(1e-3);
  spec.mutable_parallelism()->set_data(2);
  return spec;
}

std::vector<WorkerDescription> WorkersWith(int64_t bytes) {
  std::vector<WorkerDescription> workers(2);
  for (WorkerDescription& worker : workers) {
    worker.set_name("w");
    worker.set_host("h");
    TierBudget* budget = worker.add_budgets();
    budget->set_tier(DEVICE);
    budget->set_bytes(bytes);
  }
  return workers;
}

TEST(PlanCompiler, CompilesForItsRanks) {
  const PlanCompiler compiler;
  ASSERT_EQ(*compiler.RanksNeeded(Spec()), 2);
  const auto compiled = compiler.Compile(Spec(), WorkersWith(1 << 30), {});
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  EXPECT_EQ(compiled->plan->roles_size(), 1);
  EXPECT_EQ(compiled->predicted.ranks_size(), 2);
  const Plan part = compiler.PlanOfRank(*compiled->plan, 1);
  ASSERT_EQ(part.roles_size(), 1);
  EXPECT_EQ(part.rank(), 1);
}

TEST(PlanCompiler, ResolvesWithoutWorkers) {
  const PlanCompiler compiler;
  const JobSpec resolved = compiler.Resolved(Spec());
  EXPECT_TRUE(resolved.has_evaluate());
  EXPECT_EQ(resolved.training().sequence_length(), 16);
  JobSpec open = Spec();
  open.mutable_parallelism()->set_mode("auto");
  EXPECT_FALSE(compiler.Resolved(open).has_evaluate());
  JobSpec wrong = Spec();
  wrong.mutable_training()->set_steps(-1);
  EXPECT_EQ(compiler.Resolved(wrong).training().steps(), -1);
}

TEST(PlanCompiler, RefusesWithThePathOfTheField) {
  const PlanCompiler compiler;
  JobSpec spec = Spec();
  spec.mutable_parallelism()->set_data(3);
  const absl::Status status = compiler.RanksNeeded(spec).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_EQ(status.message().substr(0, 16), "parallelism.data") << status;
  EXPECT_TRUE(absl::IsInvalidArgument(
      compiler.Compile(Spec(), WorkersWith(1000), {}).status()));
}

TEST(PlanCompiler, SaysWhetherOtherWorkersWouldDo) {
  const PlanCompiler compiler;
  const auto refusal = [&](const JobSpec& spec,
                           const std::vector<WorkerDescription>& workers) {
    return compiler.Compile(spec, workers, {}).status();
  };
  EXPECT_TRUE(IsForWorkers(refusal(Spec(), WorkersWith(1000))));
  JobSpec automatic = Spec();
  automatic.mutable_memory()->set_mode("auto");
  EXPECT_TRUE(IsForWorkers(refusal(automatic, WorkersWith(1000))));
  std::vector<WorkerDescription> mixed = WorkersWith(1 << 30);
  mixed[0].mutable_gpu()->set_uuid("gpu");
  EXPECT_TRUE(IsForWorkers(refusal(Spec(), mixed)));
  JobSpec on_nvme = Spec();
  on_nvme.mutable_memory()->set_optimizer("nvme");
  EXPECT_TRUE(IsForWorkers(refusal(on_nvme, WorkersWith(1 << 30))));
  // Seen when its units are cut, whichever workers are to have them.
  JobSpec odd = Spec();
  odd.mutable_parallelism()->set_data(1);
  odd.mutable_parallelism()->set_tensor(2);
  odd.mutable_model()->set_num_attention_heads(1);
  ASSERT_TRUE(compiler.RanksNeeded(odd).ok());
  const absl::Status own = refusal(odd, WorkersWith(1 << 30));
  EXPECT_TRUE(absl::IsInvalidArgument(own)) << own;
  EXPECT_FALSE(IsForWorkers(own)) << own;
}

}  // namespace
}  // namespace troupe
