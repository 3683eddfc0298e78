// How well activations are packed: of GPT-2 and a Llama of its size on a
// pipeline of four, for each schedule, in f32 and bf16, units cut or not, the
// bytes of the rank that takes the most beside the most that it has in use at
// once, and the predicted step, so that memory which costs time is seen.
//
//   bazel run //tests/bench:memory_bench            # all rows
//   bazel run //tests/bench:memory_bench -- zb_v    # those whose name has this
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "proto/base/check.h"
#include "proto/job.pb.h"
#include "proto/plan/memory.h"
#include "scheduler/passes/assign_slots.h"
#include "scheduler/passes/passes.h"
#include "scheduler/pipelines/pipelines.h"
#include "scheduler/planner/planner.h"
#include "scheduler/planner/resolve.h"
#include "scheduler/planner/start_draft.h"

namespace troupe {
namespace {

constexpr int kPipeline = 4;
constexpr int kMicroBatches = 8;
constexpr absl::string_view kItem = "activations";

struct Row {
  std::string schedule;
  std::string architecture;
  std::string precision;
  int tensor = 1;
  bool sequence_parallel = false;

  std::string name() const {
    return absl::StrCat(schedule, " ", architecture, " ", precision,
                        tensor > 1 ? absl::StrCat(" tensor ", tensor) : "",
                        sequence_parallel ? " sequence" : "");
  }
};

std::vector<Row> BenchedRows() {
  std::vector<Row> rows;
  for (const Pipeline& pipeline : Pipelines()) {
    for (const char* const architecture : {"gpt2", "llama"}) {
      for (const char* const precision : {"f32", "bf16"}) {
        const Row row = {std::string(pipeline.name), architecture, precision};
        rows.push_back(row);
        rows.push_back(row);
        rows.back().tensor = 2;
        rows.push_back(rows.back());
        rows.back().sequence_parallel = true;
      }
    }
  }
  return rows;
}

JobSpec JobOf(const Row& row) {
  JobSpec job;
  job.set_name("memory");
  ModelSpec& model = *job.mutable_model();
  model.set_architecture(row.architecture);
  model.set_num_hidden_layers(12);
  model.set_hidden_size(768);
  model.set_num_attention_heads(12);
  model.set_max_position_embeddings(1024);
  const bool llama = row.architecture == "llama";
  model.set_vocab_size(llama ? 32000 : 50304);
  if (llama) {
    model.set_num_key_value_heads(4);
    model.set_intermediate_size(2048);
  }
  job.mutable_data()->set_tokens("text.tokens");
  TrainingSpec& training = *job.mutable_training();
  training.set_steps(1000);
  training.set_sequence_length(1024);
  training.set_micro_batch_size(2);
  training.set_global_batch_size(2 * kMicroBatches);
  training.set_precision(row.precision);
  job.mutable_optimizer()->set_lr(1e-4);
  ParallelismSpec& parallelism = *job.mutable_parallelism();
  parallelism.set_pipeline(kPipeline);
  parallelism.set_pipeline_schedule(row.schedule);
  parallelism.set_tensor(row.tensor);
  parallelism.set_sequence_parallel(row.sequence_parallel);
  return job;
}

std::vector<WorkerDescription> WorkersOf(const Row& row) {
  std::vector<WorkerDescription> workers(kPipeline * row.tensor);
  for (size_t r = 0; r < workers.size(); ++r) {
    workers[r].set_name(absl::StrCat("w", r));
    workers[r].set_host(absl::StrCat("host", r / 2));
    workers[r].set_threads(8);
  }
  return workers;
}

// As it is when buffers are declared and none has a place.
Draft Declared(const JobSpec& job) {
  absl::StatusOr<Draft> draft = StartDraft(ResolveJob(job).value());
  CHECK_OK(draft.status());
  for (const Pass& pass : Passes()) {
    pass.run(*draft);
    if (pass.name == "declare buffers") break;
  }
  return *std::move(draft);
}

int64_t PackedBytes(const Role& role) {
  for (const MemoryItem& item : MemoryItems(role)) {
    if (item.item() == kItem) return item.bytes();
  }
  return 0;
}

void Run(const Row& row) {
  const JobSpec job = JobOf(row);
  const Plan plan = CompilePlan(job, WorkersOf(row)).value();
  const Draft declared = Declared(job);
  int64_t packed = 0;
  int64_t least = 0;
  for (int r = 0; r < plan.roles_size(); ++r) {
    packed = std::max(packed, PackedBytes(plan.roles(r)));
    least = std::max(least,
                     LeastBytes(declared.plan, declared.plan.roles(r), kItem));
  }
  std::printf("%-44s %10.1f MB %10.1f MB %8.3f %12.4f s\n", row.name().c_str(),
              static_cast<double>(packed) * 1e-6,
              static_cast<double>(least) * 1e-6,
              static_cast<double>(packed) / static_cast<double>(least),
              plan.prediction().step_seconds());
}

}  // namespace
}  // namespace troupe

int main(int argc, char** argv) {
  std::printf("%-44s %13s %13s %8s %14s\n", "", "packed", "in use", "ratio",
              "step");
  for (const troupe::Row& row : troupe::BenchedRows()) {
    if (argc > 1 && !absl::StrContains(row.name(), argv[1])) continue;
    troupe::Run(row);
  }
  return 0;
}
