// How fast a training step of GPT-2 124M (12 x 768, sequence 1,024, vocabulary
// 50,257) is on one process with all cores, beside what oneDNN's f32 products
// reach on the same machine in the same run.
//
//   bazel run //tests/bench:gpt2_step_bench -- [threads] [micro-batches]
//
// A step is forward and backward of each micro-batch of one sequence, the norm
// of the gradients, clipping, and AdamW on all parameters. Model FLOPs of a
// token are 6 N + 12 L C T (proto/plan/model.h); recomputation counts nothing.
// The rate of oneDNN is the best of several products of 2048^3 before and after
// the steps.
#include <oneapi/dnnl/dnnl.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "ops/cpu/device.h"
#include "proto/base/check.h"
#include "proto/base/clock.h"
#include "proto/base/philox.h"
#include "proto/plan/model.h"
#include "tests/bench/timing_device.h"
#include "tests/worker/model/model_runner.h"

// Of libgomp, which oneDNN runs on; clang may lack the header.
extern "C" void omp_set_num_threads(int threads);

namespace troupe {
namespace {

constexpr int64_t kLength = 1024;
constexpr Gpt2Size kGpt2Small = {.layers = 12,
                                 .hidden = 768,
                                 .heads = 12,
                                 .intermediate = 3072,
                                 .vocab = 50257,
                                 .positions = 1024};

double Seconds(int64_t since) {
  return 1e-9 * static_cast<double>(RealClock().MonotonicNanos() - since);
}

// FLOP/s of the best of several large products, on the threads of OpenMP, which
// are oneDNN's.
double ProductRate() {
  constexpr int64_t kN = 2048;
  std::vector<float> a(kN * kN, 0.5f), b(kN * kN, 0.25f), c(kN * kN);
  double best = std::numeric_limits<double>::infinity();
  for (int run = 0; run < 8; ++run) {
    const int64_t start = RealClock().MonotonicNanos();
    CHECK_EQ(dnnl_sgemm('N', 'N', kN, kN, kN, 1.0f, a.data(), kN, b.data(), kN,
                        0.0f, c.data(), kN),
             dnnl_success);
    best = std::min(best, Seconds(start));
  }
  return 2.0 * kN * kN * kN / best;
}

void PrintBreakdown(const std::map<std::string, double>& seconds,
                    double total) {
  std::vector<std::pair<double, std::string>> rows;
  double sum = 0;
  for (const auto& [name, time] : seconds) {
    rows.emplace_back(time, name);
    sum += time;
  }
  std::sort(rows.rbegin(), rows.rend());
  rows.emplace_back(total - sum, "outside of kernels");
  for (const auto& [time, name] : rows) {
    std::printf("  %7.1f ms %5.1f %%  %s\n", 1e3 * time, 100 * time / total,
                name.c_str());
  }
}

int Main(int threads, int micro_batches) {
  omp_set_num_threads(threads);
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  TimingDevice device(NewCpuDevice({.threads = threads}));
  std::printf("%s\n", device.Describe().c_str());
  const ModelSpec model = Gpt2Model(kGpt2Small);
  ModelRunner runner(device, model,
                     {.shape = {.sequences = 1, .sequence_length = kLength}});
  runner.Initialize(1);
  std::vector<int32_t> batch(2 * kLength);
  for (int64_t i = 0; i < 2 * kLength; ++i) {
    batch[i] = PhiloxUint32({.seed = 2}, i) % kGpt2Small.vocab;
  }
  const OptimizerSpec optimizer = AdamWSpec({});
  double product_rate = ProductRate();
  constexpr int kSteps = 4;  // the first one warms up
  double best = std::numeric_limits<double>::infinity();
  std::map<std::string, double> breakdown;
  for (int step = 1; step <= kSteps; ++step) {
    device.Reset();
    const int64_t start = RealClock().MonotonicNanos();
    for (int m = 0; m < micro_batches; ++m) {
      runner.Run(batch.data(),
                 {.step = step,
                  .first_sample = m,
                  .training = true,
                  .gradient_scale = 1.0 / (micro_batches * kLength)});
    }
    runner.Step(optimizer, step, 1.0);
    const double seconds = Seconds(start);
    std::printf("step %d: %.3f s\n", step, seconds);
    if (seconds < best) {
      best = seconds;
      breakdown = device.seconds();
    }
  }
  product_rate = std::max(product_rate, ProductRate());
  const double flops =
      ModelFlopsPerToken(model, kLength) * kLength * micro_batches;
  PrintBreakdown(breakdown, best);
  std::printf(
      "model FLOPs of a token: 6 N + 12 L C T = %.4g\n"
      "step: %.3f s, %.1f tokens/s, %.1f model GFLOP/s\n"
      "oneDNN f32 product 2048^3: %.1f GFLOP/s\n"
      "model FLOP/s over oneDNN's product rate: %.3f\n",
      ModelFlopsPerToken(model, kLength), best, kLength * micro_batches / best,
      1e-9 * flops / best, 1e-9 * product_rate, flops / best / product_rate);
  return 0;
}

}  // namespace
}  // namespace troupe

int main(int argc, char** argv) {
  const int threads =
      argc > 1 ? std::atoi(argv[1])
               : static_cast<int>(std::thread::hardware_concurrency());
  return troupe::Main(threads, argc > 2 ? std::atoi(argv[2]) : 1);
}
