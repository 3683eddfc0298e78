// Are bubbles what they are said to be? Runs every pipeline schedule on real
// daemons of this machine, as many workers as there are stages, on a synthetic
// model whose units wait for their time instead of computing, so that two cores
// do for 8 workers. Prints for each the step as it was measured, over what its
// plan predicted and over the closed form of its paper, and the share of the
// ranks' time that was idle.
//
//   bazel run //tests/bench:bubble            # 4 and 8 stages
//   bazel run //tests/bench:bubble -- 4       # some other number of ranks
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "scheduler/pipelines/pipelines.h"
#include "tests/bench/daemon_cluster.h"
#include "tests/scheduler/pipelines/closed_forms.h"

namespace troupe {
namespace {

// Of a rank's part of one micro-batch: forward, and each half of backward.
constexpr int kPassMs = 30;
constexpr int kMicroBatchesOverRanks = 2;
constexpr int kSteps = 7;
constexpr int kStepsSkipped = 2;

struct Measured {
  double step = 0;
  double predicted = 0;
  double closed_form = 0;  // 0: none is known
  double bubble = 0;       // of the ranks' time
  double bubble_predicted = 0;
  double slower = 0;  // the machine, than at its calibration
};

// One unit a stage, and as much work on every rank whatever the schedule.
std::string JobText(const Pipeline& pipeline, const PipelineShape& shape) {
  const int us = 1000 * kPassMs / shape.virtual_stages;
  return absl::StrCat(
      "name: bubble-", pipeline.name, "\n",
      "model: {architecture: synthetic, units: ", shape.stages(),
      ", forward_us: ", us, ", activation_bytes: 65536",
      ", parameter_bytes: 65536}\n", "training: {steps: ", kSteps,
      ", micro_batch_size: 1, ", "global_batch_size: ", shape.micro_batches,
      ", gradient_clipping: 0}\n", "parallelism: {pipeline: ", shape.ranks,
      ", pipeline_schedule: ", pipeline.name,
      ", virtual_stages: ", shape.virtual_stages, "}\n");
}

Measured RunSchedule(const DaemonCluster& cluster, const std::string& folder,
                     const Pipeline& pipeline, int ranks) {
  const PipelineShape shape = {
      .ranks = ranks,
      .micro_batches = kMicroBatchesOverRanks * ranks,
      .virtual_stages = pipeline.default_virtual_stages};
  const std::string file = folder + "/job.yaml";
  std::ofstream(file) << JobText(pipeline, shape);
  const JobRun run = cluster.Run({.file = file, .settings = {}});

  const int pass = kPassMs / shape.virtual_stages;
  const std::optional<int> bubble =
      FindClosedForm(pipeline.name).bubble(shape, {pass, pass, pass});
  const double work = 3e-3 * kPassMs * shape.micro_batches;
  Measured measured;
  measured.step = run.MedianStepSeconds(kStepsSkipped);
  measured.predicted = run.prediction().at("step_seconds").get<double>();
  measured.closed_form = bubble ? work + 1e-3 * *bubble : 0;
  measured.bubble = 1 - work / measured.step;
  measured.bubble_predicted =
      run.prediction().at("bubble_of_total").get<double>();
  measured.slower = run.MedianSlower(kStepsSkipped);
  return measured;
}

void RunAll(const std::string& folder, int ranks) {
  std::printf("%d stages, %d micro-batches of %d ms a rank\n", ranks,
              kMicroBatchesOverRanks * ranks, 3 * kPassMs);
  std::printf("%-18s %9s %9s %6s %9s %6s   %7s %9s\n", "", "step", "predicted",
              "ratio", "closed", "ratio", "bubble", "predicted");
  double worst = 0;
  double slower = 0;
  const DaemonCluster cluster(folder, ranks);
  for (const Pipeline& pipeline : Pipelines()) {
    const Measured m = RunSchedule(cluster, folder, pipeline, ranks);
    std::printf("%-18s %6.0f ms %6.0f ms %6.3f ",
                std::string(pipeline.name).c_str(), 1e3 * m.step,
                1e3 * m.predicted, m.step / m.predicted);
    if (m.closed_form > 0) {
      std::printf("%6.0f ms %6.3f", 1e3 * m.closed_form,
                  m.step / m.closed_form);
    } else {
      std::printf("%9s %6s", "-", "-");
    }
    std::printf("   %5.1f %% %7.1f %%\n", 100 * m.bubble,
                100 * m.bubble_predicted);
    std::fflush(stdout);
    worst = std::max(worst, std::abs(m.step / m.predicted - 1));
    slower = std::max(slower, m.slower);
  }
  std::printf(
      "furthest from its prediction: %.1f %%\n"
      "machine: up to %.0f %% slower than at calibration\n\n",
      100 * worst, 100 * slower);
}

}  // namespace
}  // namespace troupe

int main(int argc, char** argv) {
  const std::string folder =
      std::filesystem::temp_directory_path() / "troupe-bubble";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  std::vector<int> ranks = {4, 8};
  if (argc > 1) ranks.clear();
  for (int i = 1; i < argc; ++i) ranks.push_back(std::atoi(argv[i]));
  for (const int n : ranks) {
    CHECK(n >= 1 && n <= 64) << "usage: bubble [RANKS...]";
    troupe::RunAll(folder, n);
  }
  std::filesystem::remove_all(folder);
  return 0;
}
