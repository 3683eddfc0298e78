// How far gathers of whole units run ahead of their use (ZeRO 3), as devices
// have room for it, and what that is worth as predicted
// (scheduler/planner/gather_ahead.h). Nothing runs: of each job, on eight
// machines with one accelerator each, the budget of a device goes from the
// least with which there is a plan to plenty.
//
//   bazel run //tests/bench:gather_bench
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/job.pb.h"
#include "proto/plan/buffer_kind.h"
#include "proto/plan/memory.h"
#include "scheduler/passes/passes.h"
#include "scheduler/planner/gather_ahead.h"
#include "scheduler/planner/planner.h"
#include "scheduler/planner/remedies.h"
#include "scheduler/planner/resolve.h"
#include "scheduler/planner/start_draft.h"

namespace troupe {
namespace {

constexpr int kWorkers = 8;
constexpr double kMiB = 1 << 20;

struct Row {
  int micro_batches = 1;
  int sequences = 1;                   // of a micro-batch
  double gigabytes_per_second = 22.5;  // between machines
};
constexpr Row kRows[] = {
    {.micro_batches = 4, .sequences = 8},
    {.micro_batches = 4, .sequences = 16},
    {.micro_batches = 1, .sequences = 16},
    {.micro_batches = 4, .sequences = 8, .gigabytes_per_second = 100}};

// GPT-2 124M: a table as large as five blocks, which the head shares.
JobSpec JobOf(const Row& row) {
  JobSpec job;
  job.set_name("gather");
  ModelSpec& model = *job.mutable_model();
  model.set_architecture("gpt2");
  model.set_num_hidden_layers(12);
  model.set_hidden_size(768);
  model.set_num_attention_heads(12);
  model.set_max_position_embeddings(1024);
  model.set_vocab_size(50304);
  job.mutable_data()->set_tokens("text.tokens");
  TrainingSpec& training = *job.mutable_training();
  training.set_steps(1000);
  training.set_sequence_length(1024);
  training.set_micro_batch_size(row.sequences);
  training.set_global_batch_size(row.sequences * row.micro_batches * kWorkers);
  training.set_precision("bf16");
  job.mutable_optimizer()->set_lr(1e-4);
  job.mutable_parallelism()->set_data(kWorkers);
  job.mutable_parallelism()->set_zero(3);
  return job;
}

std::vector<WorkerDescription> WorkersOf(const Row& row, int64_t device_bytes) {
  std::vector<WorkerDescription> workers(kWorkers);
  for (int w = 0; w < kWorkers; ++w) {
    workers[w].set_name(absl::StrCat("w", w));
    workers[w].set_host(absl::StrCat("host", w));
    workers[w].set_threads(1);
    workers[w].set_host_cores(1);
    TierBudget& budget = *workers[w].add_budgets();
    budget.set_tier(DEVICE);
    budget.set_bytes(device_bytes);
    Calibration& calibration = *workers[w].mutable_calibration();
    calibration.set_threads(1);
    MatmulRate& matmul = *calibration.add_matmul();
    matmul.set_dtype(BF16);
    matmul.set_m(1024);
    matmul.set_n(10240);
    matmul.set_k(5120);
    matmul.set_flops_per_second(270e12);
    AttentionRate& attention = *calibration.add_attention();
    attention.set_dtype(BF16);
    attention.set_length(1024);
    attention.set_head_dim(64);
    attention.set_forward_flops_per_second(150e12);
    attention.set_backward_flops_per_second(100e12);
    calibration.set_memory_bytes_per_second(1.8e12);
    calibration.set_optimizer_bytes_per_second(1.5e12);
    calibration.set_elementwise_ops_per_second(2e12);
    LinkRate& network = *workers[w].mutable_network()->mutable_rate();
    network.set_latency_us(20);
    network.set_bytes_per_second(row.gigabytes_per_second * 1e9);
  }
  return workers;
}

int64_t UnshardedBytes(const Plan& plan) {
  int64_t bytes = 0;
  for (const MemoryItem& item : MemoryItems(plan.roles(0))) {
    if (item.item() == LineItem(Buffer::UNSHARDED_PARAMETERS)) {
      bytes += item.bytes();
    }
  }
  return bytes;
}

Plan PlanOf(const JobSpec& job, const Row& row, int64_t device_bytes) {
  absl::StatusOr<Plan> plan = CompilePlan(job, WorkersOf(row, device_bytes));
  CHECK_OK(plan.status());
  return *std::move(plan);
}

// What a plan takes before anybody looks for more.
Plan OneAhead(const JobSpec& job, const Row& row, int64_t device_bytes) {
  absl::StatusOr<Draft> draft = StartDraft(ResolveJob(job).value());
  CHECK_OK(draft.status());
  for (const Pass& pass : ProgramPasses()) pass.run(*draft);
  Plan plan = GatherOneAhead(*std::move(draft));
  plan.mutable_prediction()->set_step_seconds(
      PredictedStepSeconds(plan, WorkersOf(row, device_bytes)));
  return plan;
}

void Print(const char* room, const Plan& plan, double longest) {
  const double seconds = plan.prediction().step_seconds();
  std::printf(
      "  %-24s %6.0f MiB  unsharded %4.0f MiB  ahead %3d  step %6.1f ms"
      "  %.3f\n",
      room, static_cast<double>(BytesIn(plan.roles(0), DEVICE)) / kMiB,
      static_cast<double>(UnshardedBytes(plan)) / kMiB, UnitsAhead(plan),
      seconds * 1e3, seconds / longest);
}

void Run(const Row& row) {
  std::printf("%d micro-batches of %d sequences, links of %g GB/s\n",
              row.micro_batches, row.sequences, row.gigabytes_per_second);
  constexpr int64_t kPlenty = int64_t{1} << 40;
  JobSpec when_used = JobOf(row);
  when_used.mutable_memory()->set_unsharded_bytes(0);
  const Plan nearest = PlanOf(when_used, row, kPlenty);
  const double longest = nearest.prediction().step_seconds();
  Print("when they are used", nearest, longest);
  Print("one unit ahead", OneAhead(JobOf(row), row, kPlenty), longest);
  const int64_t least = BytesIn(nearest.roles(0), DEVICE);
  const JobSpec job = JobOf(row);
  const Plan most = PlanOf(job, row, kPlenty);
  const int64_t more = BytesIn(most.roles(0), DEVICE) - least;
  for (const int percent : {0, 25, 50, 75}) {
    if (more <= 0) continue;
    Print(absl::StrCat("room for ", percent, " %").c_str(),
          PlanOf(job, row, least + more * percent / 100), longest);
  }
  Print("plenty", most, longest);
  std::printf("  which is %s\n", most.prediction().gathers().c_str());
}

}  // namespace
}  // namespace troupe

int main() {
  for (const troupe::Row& row : troupe::kRows) troupe::Run(row);
}
