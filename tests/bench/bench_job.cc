#include "tests/bench/bench_job.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/cores.h"
#include "proto/base/philox.h"
#include "proto/base/status.h"
#include "scheduler/planner/planner.h"
#include "storage/dataset/token_file_writer.h"
#include "tests/bench/bench_device.h"
#include "worker/collective/shared_memory/memory_domain.h"

namespace troupe {
namespace {

// pytorch_models.py has the same.
struct Sizes {
  const char* name;
  const char* architecture;
  int layers, hidden, heads, key_value_heads, intermediate, vocab, positions;
  int experts = 0;  // of which each token has two
};
constexpr Sizes kModels[] = {
    {"gpt2", "gpt2", 12, 768, 12, 12, 3072, 50257, 1024},
    {"gpt2-1.5b", "gpt2", 48, 1600, 25, 25, 6400, 50257, 1024},
    {"llama", "llama", 12, 768, 12, 4, 2048, 32000, 1024},
    {"mixtral", "mixtral", 12, 768, 12, 4, 1024, 32000, 1024, 8},
    {"llama-1b", "llama", 22, 2048, 32, 4, 5632, 32000, 4096},
};

ModelSpec Model(const BenchJobOptions& options) {
  const Sizes* sizes = nullptr;
  for (const Sizes& row : kModels) {
    if (options.model == row.name) sizes = &row;
  }
  CHECK(sizes != nullptr) << options.model;
  ModelSpec model;
  model.set_architecture(sizes->architecture);
  model.set_num_hidden_layers(sizes->layers);
  model.set_hidden_size(sizes->hidden);
  model.set_num_attention_heads(sizes->heads);
  if (sizes->key_value_heads != sizes->heads) {
    model.set_num_key_value_heads(sizes->key_value_heads);
  }
  model.set_intermediate_size(sizes->intermediate);
  if (sizes->experts > 0) {
    model.set_num_experts(sizes->experts);
    model.set_num_experts_per_tok(2);
  }
  model.set_vocab_size(options.vocabulary > 0 ? options.vocabulary
                                              : sizes->vocab);
  model.set_max_position_embeddings(
      std::max(sizes->positions, options.sequence_length));
  return model;
}

// More than any of them needs.
constexpr int64_t kNvmeBytes = int64_t{1} << 40;

void WriteTokens(const std::string& path, int vocab, int document_tokens) {
  auto writer = TokenFileWriter::Create(
      {.path = path, .vocab_size = uint64_t(vocab), .tokenizer = "none"});
  CHECK_OK(writer.status());
  std::vector<int32_t> tokens(1 << 20);
  for (size_t i = 0; i < tokens.size(); ++i) {
    tokens[i] = PhiloxUint32({.seed = 2}, i) % vocab;
  }
  const size_t piece = document_tokens > 0 ? document_tokens : tokens.size();
  for (size_t at = 0; at < tokens.size(); at += piece) {
    CHECK_OK((*writer)->Append(
        absl::MakeSpan(tokens).subspan(at, piece)));  // or what is left
    if (document_tokens > 0) CHECK_OK((*writer)->EndDocument());
  }
  CHECK_OK((*writer)->Finish().status());
}

int Replicas(const BenchJobOptions& options) {
  return options.workers / (options.tensor * options.context);
}

absl::Status CheckRanks(const BenchJobOptions& options) {
  if (options.workers < 1 || options.tensor < 1 || options.context < 1) {
    return absl::InvalidArgumentError(
        "workers, tensor and context: use 1 or more of each");
  }
  const int64_t ranks = int64_t{options.tensor} * options.context;
  if (options.workers % ranks == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("workers: ", options.workers, " are no multiple of tensor ",
                   options.tensor, " x context ", options.context, "; use ",
                   ranks * (options.workers / ranks + 1)));
}

}  // namespace

std::vector<WorkerDescription> BenchWorkers(const BenchJobOptions& options) {
  std::vector<WorkerDescription> workers(
      options.workers, DescribeBenchDevice({.device = options.device,
                                            .threads = options.threads}));
  for (int i = 0; i < options.workers; ++i) {
    workers[i].set_name(absl::StrCat("worker-", i));
    workers[i].set_host_cores(UsableCoreCount());
    workers[i].set_memory_domain(MemoryDomain());
    if (options.nvme) {
      TierBudget& nvme = *workers[i].add_budgets();
      nvme.set_tier(NVME);
      nvme.set_bytes(kNvmeBytes);
    }
    for (TierBudget& budget : *workers[i].mutable_budgets()) {
      budget.set_bytes(budget.bytes() / options.workers);
    }
  }
  return workers;
}

int64_t TokensPerStep(const BenchJobOptions& options) {
  return int64_t{Replicas(options)} * options.micro_batches * options.batch *
         options.sequence_length;
}

std::vector<std::string> BenchModels() {
  std::vector<std::string> names;
  for (const Sizes& row : kModels) names.push_back(row.name);
  return names;
}

absl::StatusOr<Plan> BenchPlan(const BenchJobOptions& options,
                               const std::string& tokens) {
  return BenchPlan(options, tokens, BenchWorkers(options));
}

absl::StatusOr<Plan> BenchPlan(const BenchJobOptions& options,
                               const std::string& tokens,
                               const std::vector<WorkerDescription>& workers) {
  RETURN_IF_ERROR(CheckRanks(options));
  JobSpec job;
  job.set_name("bench");
  *job.mutable_model() = Model(options);
  WriteTokens(tokens, job.model().vocab_size(), options.document_tokens);
  job.mutable_data()->set_tokens(tokens);
  job.mutable_data()->set_isolate_documents(options.isolate_documents);
  TrainingSpec& training = *job.mutable_training();
  training.set_steps(1000000);  // until nobody asks for more
  training.set_micro_batch_size(options.batch);
  training.set_global_batch_size(options.batch * options.micro_batches *
                                 Replicas(options));
  training.set_sequence_length(options.sequence_length);
  training.set_precision(options.precision);
  job.mutable_optimizer()->set_lr(1e-5);
  ParallelismSpec& parallelism = *job.mutable_parallelism();
  parallelism.set_data(Replicas(options));
  parallelism.set_tensor(options.tensor);
  parallelism.set_context(options.context);
  if (options.context > 1) {
    parallelism.set_context_method(options.context_method);
  }
  parallelism.set_sequence_parallel(options.sequence_parallel);
  parallelism.set_zero(options.zero);
  if (options.expert > 1) parallelism.set_expert(options.expert);
  *job.mutable_memory() = options.memory;
  return CompilePlan(job, workers);
}

}  // namespace troupe
