#include "tests/bench/bench_job.h"

#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/philox.h"
#include "scheduler/planner/planner.h"
#include "storage/dataset/token_file_writer.h"
#include "worker/collective/shared_memory/memory_domain.h"

namespace troupe {
namespace {

constexpr int64_t kBudgetBytes = int64_t{1} << 40;  // plans, reserves nothing

ModelSpec Model(const BenchJobOptions& options) {
  ModelSpec model;
  model.set_architecture(options.model);
  model.set_num_hidden_layers(12);
  model.set_hidden_size(768);
  model.set_num_attention_heads(12);
  model.set_max_position_embeddings(1024);
  if (options.model == "llama") {
    model.set_num_key_value_heads(4);
    model.set_intermediate_size(2048);
    model.set_vocab_size(32000);
  } else {
    model.set_intermediate_size(3072);
    model.set_vocab_size(50257);
  }
  return model;
}

void WriteTokens(const std::string& path, int vocab) {
  auto writer = TokenFileWriter::Create(
      {.path = path, .vocab_size = uint64_t(vocab), .tokenizer = "none"});
  CHECK_OK(writer.status());
  std::vector<int32_t> tokens(1 << 18);
  for (size_t i = 0; i < tokens.size(); ++i) {
    tokens[i] = PhiloxUint32({.seed = 2}, i) % vocab;
  }
  CHECK_OK((*writer)->Append(tokens));
  CHECK_OK((*writer)->Finish().status());
}

std::vector<WorkerDescription> Workers(const BenchJobOptions& options) {
  std::vector<WorkerDescription> workers(options.workers);
  for (int i = 0; i < options.workers; ++i) {
    workers[i].set_name(absl::StrCat("worker-", i));
    workers[i].set_device("cpu");
    workers[i].set_threads(options.threads);
    workers[i].set_host_cores(std::thread::hardware_concurrency());
    workers[i].set_memory_domain(MemoryDomain());
    TierBudget& budget = *workers[i].add_budgets();
    budget.set_tier(DEVICE);
    budget.set_bytes(kBudgetBytes);
  }
  return workers;
}

}  // namespace

int64_t TokensPerStep(const BenchJobOptions& options) {
  return int64_t{options.workers} * options.micro_batches * options.batch *
         options.sequence_length;
}

Plan BenchPlan(const BenchJobOptions& options, const std::string& tokens) {
  JobSpec job;
  job.set_name("bench");
  *job.mutable_model() = Model(options);
  WriteTokens(tokens, job.model().vocab_size());
  job.mutable_data()->set_tokens(tokens);
  TrainingSpec& training = *job.mutable_training();
  training.set_steps(1000000);  // until nobody asks for more
  training.set_micro_batch_size(options.batch);
  training.set_global_batch_size(options.batch * options.micro_batches *
                                 options.workers);
  training.set_sequence_length(options.sequence_length);
  training.set_precision(options.precision);
  job.mutable_optimizer()->set_lr(1e-5);
  job.mutable_parallelism()->set_data(options.workers);
  absl::StatusOr<Plan> plan = CompilePlan(job, Workers(options));
  CHECK_OK(plan.status());
  return *std::move(plan);
}

}  // namespace troupe
