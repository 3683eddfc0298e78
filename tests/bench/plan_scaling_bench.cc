// How planning grows: its processor time and memory over the ranks of a job,
// the workers of a cluster file that the job does not use, the micro-batches of
// a step, the blocks of the model and the measured products of a device (rows
// of the file's matmul). Each is multiplied by four from line to line, all else
// stays; beside time and memory stands what they were multiplied by.
// Near-linear is 4 or less. Each line is a process of its own, so that its
// memory is its own. The last line says how the machine was meanwhile
// (machine_span.h).
//
//   bazel run //tests/bench:plan_scaling_bench             # all
//   bazel run //tests/bench:plan_scaling_bench -- ranks    # of that name
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "clients/cluster_file/cluster_file.h"
#include "clients/cluster_file/cluster_workers.h"
#include "proto/base/check.h"
#include "proto/job.pb.h"
#include "proto/plan/ranks_needed.h"
#include "scheduler/planner/planner.h"
#include "tests/bench/machine_span.h"

namespace troupe {
namespace {

struct Size {
  int data = 64;
  int nodes = 0;  // of 8 workers; 0: as many as the job fills
  int micro_batches = 8;
  int blocks = 32;
  int rows = 4;
  int context = 1;  // a ring
  int zero = 0;
};

JobSpec JobOf(const Size& size) {
  JobSpec job;
  job.set_name("plan");
  ModelSpec& model = *job.mutable_model();
  model.set_architecture("llama");
  model.set_num_hidden_layers(size.blocks);
  model.set_hidden_size(4096);
  model.set_num_attention_heads(32);
  model.set_num_key_value_heads(8);
  model.set_intermediate_size(14336);
  model.set_vocab_size(128256);
  model.set_max_position_embeddings(8192);
  job.mutable_data()->set_tokens("text.tokens");
  TrainingSpec& training = *job.mutable_training();
  training.set_steps(1000);
  training.set_sequence_length(8192);
  training.set_micro_batch_size(1);
  training.set_global_batch_size(size.data * size.micro_batches);
  training.set_precision("bf16");
  job.mutable_optimizer()->set_lr(1e-4);
  ParallelismSpec& parallelism = *job.mutable_parallelism();
  parallelism.set_data(size.data);
  parallelism.set_zero(size.zero);
  if (size.context > 1) {
    parallelism.set_context(size.context);
    parallelism.set_context_method("ring");
  }
  return job;
}

std::string FileOf(const Size& size, int ranks) {
  const int nodes = size.nodes > 0 ? size.nodes : (ranks + 7) / 8;
  std::string products;
  for (int row = 0; row < size.rows; ++row) {
    absl::StrAppend(&products, "      - {dtype: bf16, m: ", 1024 + row,
                    ", n: 4096, k: 4096, tflops: 250}\n");
  }
  return absl::StrCat(
      "nodes: [{count: ", nodes, ", workers: 8, device: gpu}]\n",
      "devices:\n  gpu:\n    matmul:\n", products,
      "    memory: {device: {size_gib: 8000, bandwidth_gb_s: 2000}}\n",
      "links:\n  intra_node: {latency_us: 10, bandwidth_gb_s: 240}\n",
      "  inter_node: {latency_us: 20, bandwidth_gb_s: 22}\n");
}

struct Cost {
  double seconds = 0;  // of the processor; there is one thread
  double megabytes = 0;
};

double SecondsOf(const timeval& time) {
  return static_cast<double>(time.tv_sec) +
         static_cast<double>(time.tv_usec) * 1e-6;
}

// From the file's text and the job to the plan and its prediction.
Cost CostOf(const Size& size) {
  const JobSpec job = JobOf(size);
  const std::string text = FileOf(size, RanksNeeded(job));
  const absl::StatusOr<ClusterSpec> cluster =
      ParseClusterSpec({.name = "cluster.yaml", .text = text});
  CHECK_OK(cluster.status());
  const auto workers = ClusterWorkers(
      *cluster, {.count = RanksNeeded(job), .precision = "bf16"});
  CHECK_OK(workers.status());
  CHECK_OK(CompilePlan(job, *workers).status());
  rusage usage;
  CHECK_EQ(getrusage(RUSAGE_SELF, &usage), 0);
  Cost cost;
  cost.seconds = SecondsOf(usage.ru_utime) + SecondsOf(usage.ru_stime);
  cost.megabytes = static_cast<double>(usage.ru_maxrss) * 1e-3;
  return cost;
}

struct Dimension {
  const char* name;
  std::vector<int> values;
  std::function<void(int value, Size& size)> set;
};
std::vector<Dimension> Dimensions() {
  return {
      {"ranks",
       {96, 384, 1536, 6144, 24576, 98304},
       [](int value, Size& size) { size.data = value; }},
      {"ranks, zero 3",
       {96, 384, 1536, 6144, 24576, 98304},
       [](int value, Size& size) {
         size.data = value;
         size.zero = 3;
       }},
      {"unused workers",
       {1000, 4000, 16000, 64000, 256000},
       [](int value, Size& size) { size.nodes = (size.data + value) / 8; }},
      {"micro-batches",
       {32, 128, 512, 2048},
       [](int value, Size& size) { size.micro_batches = value; }},
      {"micro-batches of a ring of 16",
       {4, 16, 64, 256},
       [](int value, Size& size) {
         size.data = 1;
         size.context = 16;
         size.zero = 1;
         size.micro_batches = value;
       }},
      {"blocks",
       {16, 64, 256, 1024},
       [](int value, Size& size) { size.blocks = value; }},
      {"rows",
       {4, 16, 64, 256},
       [](int value, Size& size) { size.rows = value; }},
  };
}

// In a process of its own.
Cost PlanApart(const Size& size) {
  void* const shared = mmap(nullptr, sizeof(Cost), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(shared != MAP_FAILED);
  auto* const cost = new (shared) Cost();
  const pid_t child = fork();
  if (child == 0) {
    *cost = CostOf(size);
    _exit(0);
  }
  int status = 0;
  CHECK_EQ(waitpid(child, &status, 0), child);
  CHECK_EQ(status, 0) << "planning failed";
  const Cost result = *cost;
  munmap(shared, sizeof(Cost));
  return result;
}

void Print(const Dimension& dimension, MachineSpan& machine) {
  Cost before;
  for (const int value : dimension.values) {
    Size size;
    dimension.set(value, size);
    const Cost cost = PlanApart(size);
    std::printf("%-30s %8d %9.2f s %8.0f MB", dimension.name, value,
                cost.seconds, cost.megabytes);
    if (before.seconds > 0) {
      std::printf("   x%.1f time, x%.1f memory", cost.seconds / before.seconds,
                  cost.megabytes / before.megabytes);
    }
    std::printf("\n");
    std::fflush(stdout);
    before = cost;
    machine.Probe();
  }
}

}  // namespace
}  // namespace troupe

int main(int argc, char** argv) {
  troupe::MachineSpan machine(1);
  for (const troupe::Dimension& dimension : troupe::Dimensions()) {
    if (argc > 1 && !absl::StrContains(dimension.name, argv[1])) continue;
    troupe::Print(dimension, machine);
  }
  std::printf("%s\n", machine.Line().c_str());
  return 0;
}
