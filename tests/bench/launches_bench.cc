// How many kernels a training step would launch on a GPU, by model: what the
// host has to keep up with, and what CUDA graphs would save.
//
//   bazel run //tests/bench:launches_bench
//
// Runs steps of models as deep as the real ones and so narrow that a CPU does
// them at once, counts the calls of each op, and multiplies by the kernels that
// the op launches (ops/cuda). Beside it how long a step takes at half of an
// H100's 989 TFLOP/s, from the real model's FLOPs: the time in which the host
// must launch them.
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <string>

#include "absl/strings/str_split.h"
#include "ops/cpu/device.h"
#include "proto/base/check.h"
#include "tests/bench/timing_device.h"
#include "tests/equivalence/cluster_of_threads.h"
#include "tests/equivalence/small_job.h"

namespace troupe {
namespace {

struct Model {
  const char* name;
  const char* architecture;
  int layers;
  double parameters;  // of products, for 6 N
  int width;
  int64_t sequences;  // of a micro-batch
  int64_t length;
};

constexpr Model kModels[] = {
    {"GPT-2 124M", "gpt2", 12, 124e6, 768, 16, 1024},
    {"GPT-2 1.5B", "gpt2", 48, 1.56e9, 1600, 8, 1024},
    {"Llama 1.1B", "llama", 22, 1.1e9, 2048, 4, 2048},
};
constexpr double kFlopsPerSecond = 0.5 * 989e12;

// Kernels of one call; 1 where nothing is said. An embedding's rows are
// numbered, sorted by CUB (a histogram, its sums, and a pass for each of two
// digits of a vocabulary of 50,257), and added up in two steps; so are GPT-2's
// positions, in one.
const std::map<std::string, int>& LaunchesOfOp() {
  static const auto* const launches = new std::map<std::string, int>{
      {"attention_backward", 3},
      {"bias_gradient", 2},
      {"layer_norm_backward_weight", 2},
      {"rms_norm_backward_weight", 2},
      {"sum_of_squares", 2},
      {"cross_entropy", 2},
      {"embedding_backward", 1 + 4 + 2 + 1},
  };
  return *launches;
}

JobSpec JobOf(const Model& model, int micro_batches) {
  JobSpec job = SmallJobOf(model.architecture);
  job.mutable_model()->set_num_hidden_layers(model.layers);
  TrainingSpec& training = *job.mutable_training();
  training.set_precision("bf16");
  training.set_steps(2);
  training.set_validate_every(0);
  training.set_micro_batch_size(1);
  training.set_global_batch_size(micro_batches);
  return job;
}

// Of the second step, by op.
std::map<std::string, int64_t> CallsOfAStep(const JobSpec& job) {
  TimingDevice* device = nullptr;
  std::map<std::string, int64_t> before, calls;
  const TrainingRun run = Train(
      job,
      {.new_device =
           [&] {
             auto made =
                 std::make_unique<TimingDevice>(NewCpuDevice({.threads = 1}));
             device = made.get();
             return made;
           },
       .on_step =
           [&](int, const StepRecord& record, const std::vector<TrainLoop*>&) {
             if (record.step() == 1) {
               before = device->calls();
               return;
             }
             for (const auto& [name, count] : device->calls()) {
               const std::string op(*absl::StrSplit(name, ' ').begin());
               calls[op] += count - before[name];
             }
           }});
  CHECK_OK(run.status());
  return calls;
}

int64_t LaunchesOf(const std::map<std::string, int64_t>& calls) {
  int64_t launches = 0;
  for (const auto& [op, count] : calls) {
    const auto found = LaunchesOfOp().find(op);
    launches += count * (found == LaunchesOfOp().end() ? 1 : found->second);
  }
  return launches;
}

void Print(const Model& model) {
  const int64_t one = LaunchesOf(CallsOfAStep(JobOf(model, 1)));
  const int64_t two = LaunchesOf(CallsOfAStep(JobOf(model, 2)));
  const double tokens = static_cast<double>(model.sequences * model.length);
  const double flops =
      tokens *
      (6 * model.parameters + 12.0 * model.layers * model.width * model.length);
  const double micros = 1e6 * flops / kFlopsPerSecond;
  std::printf("%-11s %8lld %8lld %11.1f %15.1f\n", model.name,
              static_cast<long long>(two - one),
              static_cast<long long>(2 * one - two), 1e-3 * micros,
              micros / static_cast<double>(one));
}

int Run() {
  std::printf("            launches of a      ms at half     us for each\n");
  std::printf("            micro-batch  step  the peak        launch\n");
  for (const Model& model : kModels) Print(model);
  return 0;
}

}  // namespace
}  // namespace troupe

int main() { return troupe::Run(); }
