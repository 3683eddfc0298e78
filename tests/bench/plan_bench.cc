// How long a plan takes, from the job to the checked and predicted plan, and
// how large it is: for each of a few sizes of cluster, of ever more ranks, and
// for one rank's pipeline with many units and micro-batches. Each row is a
// process of its own, so that its memory is its own. The last line says how the
// machine was meanwhile (machine_span.h).
//
//   bazel run //tests/bench:plan_bench            # all rows
//   bazel run //tests/bench:plan_bench -- 96      # those whose name has this
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "proto/base/check.h"
#include "proto/base/clock.h"
#include "proto/job.pb.h"
#include "scheduler/planner/planner.h"
#include "tests/bench/machine_span.h"

namespace troupe {
namespace {

struct Row {
  int layers = 0;
  int pipeline = 1;
  int tensor = 1;
  int data = 1;
  int micro_batches = 1;
  const char* schedule = "1f1b";
  int hosts_of = 8;       // ranks on a host
  bool measured = false;  // every worker has measured something else

  int ranks() const { return pipeline * tensor * data; }
  std::string name() const {
    return absl::StrCat(ranks(), " ranks (pipeline ", pipeline, " x data ",
                        data, " x tensor ", tensor, "), ", layers, " layers, ",
                        micro_batches, " micro-batches, ", schedule,
                        measured ? ", each measured" : "");
  }
};

std::vector<Row> Rows() {
  return {
      {.layers = 96,
       .pipeline = 4,
       .tensor = 8,
       .data = 3,
       .micro_batches = 64},
      {.layers = 96,
       .pipeline = 16,
       .tensor = 8,
       .data = 8,
       .micro_batches = 64},
      {.layers = 96,
       .pipeline = 16,
       .tensor = 8,
       .data = 24,
       .micro_batches = 64},
      {.layers = 96,
       .pipeline = 16,
       .tensor = 8,
       .data = 96,
       .micro_batches = 64},
      {.layers = 96,
       .pipeline = 16,
       .tensor = 8,
       .data = 24,
       .micro_batches = 64,
       .measured = true},
      {.layers = 96, .pipeline = 16, .data = 192, .micro_batches = 64},
      {.layers = 96,
       .pipeline = 4,
       .tensor = 8,
       .data = 3125,
       .micro_batches = 8},
      {.layers = 126,
       .pipeline = 8,
       .data = 1,
       .micro_batches = 2048,
       .schedule = "gpipe"},
      {.layers = 126,
       .pipeline = 8,
       .data = 1,
       .micro_batches = 2048,
       .schedule = "1f1b"},
  };
}

JobSpec JobOf(const Row& row) {
  JobSpec job;
  job.set_name("plan");
  ModelSpec& model = *job.mutable_model();
  model.set_architecture("llama");
  model.set_num_hidden_layers(row.layers);
  model.set_hidden_size(8192);
  model.set_num_attention_heads(64);
  model.set_num_key_value_heads(8);
  model.set_intermediate_size(28672);
  model.set_vocab_size(128256);
  model.set_max_position_embeddings(8192);
  job.mutable_data()->set_tokens("text.tokens");
  TrainingSpec& training = *job.mutable_training();
  training.set_steps(1000);
  training.set_sequence_length(4096);
  training.set_micro_batch_size(1);
  training.set_global_batch_size(row.data * row.micro_batches);
  training.set_precision("bf16");
  job.mutable_optimizer()->set_lr(1e-4);
  ParallelismSpec& parallelism = *job.mutable_parallelism();
  parallelism.set_pipeline(row.pipeline);
  parallelism.set_data(row.data);
  parallelism.set_tensor(row.tensor);
  parallelism.set_pipeline_schedule(row.schedule);
  return job;
}

std::vector<WorkerDescription> WorkersOf(const Row& row) {
  std::vector<WorkerDescription> workers;
  for (int r = 0; r < row.ranks(); ++r) {
    WorkerDescription& worker = workers.emplace_back();
    worker.set_name(absl::StrCat("w", r));
    worker.set_host(absl::StrCat("host", r / row.hosts_of));
    worker.set_threads(8);
    if (!row.measured) continue;
    MatmulRate& rate = *worker.mutable_calibration()->add_matmul();
    rate.set_dtype(BF16);
    rate.set_m(4096);
    rate.set_n(8192);
    rate.set_k(8192);
    rate.set_flops_per_second(4e14 + 1e9 * (r * 7919 % 1000));
  }
  return workers;
}

void Run(const Row& row) {
  const JobSpec job = JobOf(row);
  const std::vector<WorkerDescription> workers = WorkersOf(row);
  const RealClock clock;
  const int64_t begin = clock.MonotonicNanos();
  const absl::StatusOr<Plan> plan = CompilePlan(job, workers);
  const double seconds =
      static_cast<double>(clock.MonotonicNanos() - begin) * 1e-9;
  if (!plan.ok()) {
    std::printf("%-88s %s\n", row.name().c_str(),
                std::string(plan.status().message()).c_str());
    std::fflush(stdout);
    return;
  }
  rusage usage;
  CHECK_EQ(getrusage(RUSAGE_SELF, &usage), 0);
  std::printf("%-88s %8.2f s %8.0f MB %10.1f MB\n", row.name().c_str(), seconds,
              static_cast<double>(usage.ru_maxrss) / 1e3,
              static_cast<double>(plan->ByteSizeLong()) * 1e-6);
  std::fflush(stdout);
}

}  // namespace
}  // namespace troupe

int main(int argc, char** argv) {
  std::printf("%-88s %10s %11s %13s\n", "", "compiled", "memory", "plan");
  std::fflush(stdout);
  troupe::MachineSpan machine(1);
  for (const troupe::Row& row : troupe::Rows()) {
    if (argc > 1 && !absl::StrContains(row.name(), argv[1])) continue;
    const pid_t child = fork();
    if (child == 0) {
      troupe::Run(row);
      _exit(0);
    }
    int status = 0;
    if (waitpid(child, &status, 0) != child || status != 0) {
      std::printf("%-88s failed\n", row.name().c_str());
    }
    machine.Probe();
  }
  std::printf("%s\n", machine.Line().c_str());
  return 0;
}
