// No prediction is faster than the bytes over its links allow: those of each
// rank, and the adapters that ranks of a host share. What each rank has to send
// and receive in a step is counted here from the plan's instructions and the
// hosts of its ranks, without the simulator's code.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "clients/cluster_file/cluster_file.h"
#include "clients/cluster_file/cluster_workers.h"
#include "gtest/gtest.h"
#include "proto/plan/ranks_needed.h"
#include "scheduler/planner/planner.h"
#include "scheduler/simulate/cost_model.h"
#include "scheduler/simulate/simulate.h"
#include "tests/scheduler/simulate/link_bytes.h"

namespace troupe {
namespace {

struct Cluster {
  int nodes = 1;
  int workers = 8;
  std::string kind = "gpu";
  double far_gb_s = 2;  // of a worker, or of an adapter
  double near_gb_s = 200;
  int nics = 0;  // of a node; 0: each worker has a link of its own
};

// Adapters of a node that serve one of its places.
std::vector<int> NicsOf(const Cluster& cluster, int place) {
  std::vector<int> nics;
  for (int i = 0; i < cluster.nics; ++i) {
    if (i % cluster.workers == place || place % cluster.nics == i) {
      nics.push_back(i);
    }
  }
  return nics;
}

std::vector<WorkerDescription> WorkersOf(const Cluster& cluster, int count) {
  const std::string rate = absl::StrCat("bandwidth_gb_s: ", cluster.far_gb_s);
  const std::string nics =
      cluster.nics > 0 && cluster.nodes > 1
          ? absl::StrCat(", nics: [{count: ", cluster.nics, ", ", rate, "}]")
          : "";
  const auto spec = ParseClusterSpec(
      {.name = "cluster.yaml",
       .text = absl::StrCat(
           "nodes: [{count: ", cluster.nodes, ", workers: ", cluster.workers,
           ", device: d", nics, "}]\ndevices:\n  d:\n    kind: ", cluster.kind,
           "\n", "    matmul:\n",
           "      - {dtype: bf16, m: 1024, n: 4096, k: 4096, tflops: 250}\n",
           "      - {dtype: f32, m: 1024, n: 4096, k: 4096, tflops: 60}\n",
           "    memory: {device: {size_gib: 8000, bandwidth_gb_s: 2000}}\n",
           "links:\n  intra_node: {latency_us: 10, bandwidth_gb_s: ",
           cluster.near_gb_s, "}\n  inter_node: {latency_us: 20",
           nics.empty() ? absl::StrCat(", ", rate) : "", "}\n")});
  EXPECT_TRUE(spec.ok()) << spec.status();
  const auto workers =
      ClusterWorkers(*spec, {.count = count, .precision = "bf16"});
  EXPECT_TRUE(workers.ok()) << workers.status();
  return *workers;
}

// Seconds that the busiest link or adapter of the first so many ranks needs for
// its bytes.
double NeededSeconds(const Plan& plan, const Cluster& cluster,
                     const std::vector<WorkerDescription>& workers, int ranks) {
  const LinkBytes links(plan, workers);
  double seconds = 0;
  std::map<std::pair<int, int>, LinkLoad> adapters;  // by node and number there
  for (int r = 0; r < ranks; ++r) {
    const LinkLoad bytes = links.OfStep(r);
    const std::vector<int> nics = NicsOf(cluster, r % cluster.workers);
    const double parts = std::max<double>(1, static_cast<double>(nics.size()));
    seconds = std::max(
        {seconds,
         std::max(bytes.far_out, bytes.far_in) /
             (parts * cluster.far_gb_s * 1e9),
         std::max(bytes.near_out, bytes.near_in) / (cluster.near_gb_s * 1e9)});
    for (const int nic : nics) {
      LinkLoad& adapter = adapters[{r / cluster.workers, nic}];
      adapter.far_out += bytes.far_out / parts;
      adapter.far_in += bytes.far_in / parts;
    }
  }
  for (const auto& [place, bytes] : adapters) {
    seconds = std::max(seconds, std::max(bytes.far_out, bytes.far_in) /
                                    (cluster.far_gb_s * 1e9));
  }
  return seconds;
}

JobSpec SmallJob(int data, int micro_batches) {
  JobSpec job;
  job.set_name("drawn");
  ModelSpec& model = *job.mutable_model();
  model.set_architecture("llama");
  model.set_num_hidden_layers(4);
  model.set_hidden_size(256);
  model.set_num_attention_heads(8);
  model.set_num_key_value_heads(8);
  model.set_intermediate_size(512);
  model.set_vocab_size(1024);
  model.set_max_position_embeddings(256);
  job.mutable_data()->set_tokens("text.tokens");
  TrainingSpec& training = *job.mutable_training();
  training.set_steps(10);
  training.set_sequence_length(256);
  training.set_micro_batch_size(1);
  training.set_global_batch_size(data * micro_batches);
  training.set_precision("bf16");
  job.mutable_optimizer()->set_lr(1e-4);
  job.mutable_parallelism()->set_data(data);
  return job;
}

class Draw {
 public:
  explicit Draw(int seed) : random_(seed) {}

  template <typename T>
  T One(const std::vector<T>& of) {
    return of[random_() % of.size()];
  }

  JobSpec Job() {
    const int data = One<int>({1, 2, 3, 4});
    JobSpec job = SmallJob(data, One<int>({1, 2, 4}));
    if (One<bool>({false, true})) {
      job.mutable_training()->set_gradient_precision("parameters");
    }
    ParallelismSpec& parallelism = *job.mutable_parallelism();
    parallelism.set_zero(One<int>({0, 0, 1, 2, 3, 3}));
    parallelism.set_bucket_megabytes(One<double>({0.5, 25}));
    parallelism.set_pipeline(One<int>({1, 1, 2, 4}));
    if (parallelism.pipeline() > 1) {
      parallelism.set_pipeline_schedule(
          One<std::string>({"gpipe", "1f1b", "zb_h1", "zb_h2"}));
    }
    if (One<bool>({false, true})) {
      parallelism.set_tensor(One<int>({2, 4}));
      parallelism.set_tensor_method(
          parallelism.tensor() == 4 ? One<std::string>({"1d", "2d"}) : "1d");
    }
    if (One<bool>({false, true})) {
      parallelism.set_context(One<int>({2, 4}));
      parallelism.set_context_method(
          One<std::string>({"ulysses", "ring", "ring_self_attention"}));
    }
    return job;
  }

  Cluster ClusterFor(int ranks) {
    Cluster cluster;
    cluster.workers = One<int>({1, 2, 3, 4, 8});
    cluster.nodes = (ranks + cluster.workers - 1) / cluster.workers;
    cluster.kind = One<std::string>({"gpu", "gpu", "cpu"});
    cluster.far_gb_s = One<double>({0.05, 0.5, 5});
    cluster.near_gb_s = One<double>({0.2, 2, 200});
    cluster.nics = One<int>({0, 1, 1, 2, 4});
    return cluster;
  }

 private:
  std::mt19937 random_;
};

TEST(LinkBounds, NoDrawnPlanIsFasterThanItsLinks) {
  constexpr int kPlans = 200;
  Draw draw(37);
  int planned = 0;
  int bound = 0;  // whose links are what a step takes, or nearly
  for (int drawn = 0; planned < kPlans; ++drawn) {
    ASSERT_LT(drawn, 5 * kPlans) << "most draws are refused";
    const JobSpec job = draw.Job();
    const int ranks = RanksNeeded(job);
    const Cluster cluster = draw.ClusterFor(ranks);
    const std::vector<WorkerDescription> workers = WorkersOf(cluster, ranks);
    const absl::StatusOr<Plan> plan = CompilePlan(job, workers);
    if (!plan.ok()) continue;
    ++planned;
    const double needed = NeededSeconds(*plan, cluster, workers, ranks);
    const double predicted = plan->prediction().step_seconds();
    // Steps of a pipeline are taken to be steady when they are equal within
    // one part in 1,000.
    const double tolerance = job.parallelism().pipeline() > 1 ? 1e-3 : 1e-6;
    EXPECT_GE(predicted, needed * (1 - tolerance))
        << "draw " << drawn << "\n"
        << job.parallelism().DebugString() << cluster.kind << ", nodes of "
        << cluster.workers << " with " << cluster.nics << " adapters, "
        << cluster.near_gb_s << " and " << cluster.far_gb_s << " GB/s";
    if (predicted < 1.5 * needed) ++bound;
    // Nor where so many ranks differ that one stands for all of its role.
    const SteadyStep for_all =
        PredictStep(*plan, workers, CostModel(*plan, workers), 1);
    EXPECT_TRUE(for_all.one_for_each_role);
    EXPECT_GE(static_cast<double>(for_all.period_ns) * 1e-9,
              needed * (1 - tolerance))
        << "one for each role, draw " << drawn;
  }
  // Else it would hold of nothing that matters.
  EXPECT_GT(bound, kPlans / 10);
}

// Nor one with parameter servers, wherever these are.
TEST(LinkBounds, NorIsAPlanWithServers) {
  Draw draw(41);
  for (int drawn = 0; drawn < 40; ++drawn) {
    const int data = draw.One<int>({1, 2, 3, 4, 6});
    JobSpec job = SmallJob(data, draw.One<int>({1, 2}));
    job.mutable_parallelism()->set_servers(draw.One<int>({1, 2, 3}));
    job.mutable_parallelism()->set_pipeline(draw.One<int>({1, 1, 2}));
    const int ranks = RanksNeeded(job);
    const Cluster cluster = draw.ClusterFor(ranks);
    const std::vector<WorkerDescription> workers = WorkersOf(cluster, ranks);
    const absl::StatusOr<Plan> plan = CompilePlan(job, workers);
    ASSERT_TRUE(plan.ok()) << plan.status();
    const double needed = NeededSeconds(*plan, cluster, workers, ranks);
    const double tolerance = job.parallelism().pipeline() > 1 ? 1e-3 : 1e-6;
    EXPECT_GE(plan->prediction().step_seconds(), needed * (1 - tolerance))
        << "draw " << drawn;
    const SteadyStep for_all =
        PredictStep(*plan, workers, CostModel(*plan, workers), 1);
    EXPECT_GE(static_cast<double>(for_all.period_ns) * 1e-9,
              needed * (1 - tolerance))
        << "one for each role, draw " << drawn;
  }
}

struct Case {
  int data = 8;
  int context = 1;
  int zero = 0;
  int nodes = 8;
  int nics = 0;
};
struct Times {
  double predicted = 0;
  double needed = 0;
};

// A model of 7 billion parameters, on nodes of eight with 2 GB/s each.
Times TimesOf(const Case& what) {
  JobSpec job = SmallJob(what.data, 1);
  ModelSpec& model = *job.mutable_model();
  model.set_num_hidden_layers(32);
  model.set_hidden_size(4096);
  model.set_num_attention_heads(32);
  model.set_num_key_value_heads(8);
  model.set_intermediate_size(14336);
  model.set_vocab_size(32000);
  model.set_max_position_embeddings(8192);
  job.mutable_training()->set_sequence_length(8192);
  ParallelismSpec& parallelism = *job.mutable_parallelism();
  parallelism.set_zero(what.zero);
  if (what.context > 1) {
    parallelism.set_context(what.context);
    parallelism.set_context_method("ring");
  }
  const Cluster cluster = {.nodes = what.nodes, .nics = what.nics};
  const auto workers = WorkersOf(cluster, RanksNeeded(job));
  const absl::StatusOr<Plan> plan = CompilePlan(job, workers);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return {.predicted = plan->prediction().step_seconds(),
          // One node is as the others.
          .needed = NeededSeconds(*plan, cluster, workers, cluster.workers)};
}

// Gathers and scatters go at the same time, on lanes of their own.
TEST(LinkBounds, LanesOfARankShareItsAdapter) {
  const Times times = TimesOf({.data = 64, .zero = 3});
  EXPECT_GE(times.predicted, times.needed);
}

TEST(LinkBounds, SoDoARingOfContextAndZero) {
  const Times times = TimesOf({.data = 16, .context = 4, .zero = 3});
  EXPECT_GE(times.predicted, times.needed);
}

// A ring over two nodes crosses by one adapter of each, not by all eight.
TEST(LinkBounds, ARingCrossesByOneAdapter) {
  const Times times = TimesOf({.data = 1, .context = 16, .nodes = 2});
  EXPECT_GE(times.predicted, times.needed);
}

// Groups of tensor parallelism lie in nodes, so each rank sums with the others
// of its place: eight groups cross by one adapter.
TEST(LinkBounds, GroupsOfAHostShareItsAdapter) {
  const Times own = TimesOf({.data = 64});
  const Times shared = TimesOf({.data = 64, .nics = 1});
  EXPECT_GE(shared.predicted, shared.needed);
  EXPECT_GT(shared.predicted, own.predicted);
}

// Nobody has measured the network, nor said that a host has several adapters:
// what its workers send goes by one.
TEST(LinkBounds, WorkersThatSayNothingShareAnAdapter) {
  const JobSpec job = SmallJob(16, 1);
  const Cluster assumed = {.nodes = 2, .kind = "cpu", .far_gb_s = 1.1};
  std::vector<WorkerDescription> workers = WorkersOf(assumed, 16);
  for (WorkerDescription& worker : workers) worker.clear_network();
  Cluster one = assumed;
  one.nics = 1;
  const absl::StatusOr<Plan> plan = CompilePlan(job, workers);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_GE(plan->prediction().step_seconds(),
            NeededSeconds(*plan, one, workers, 16));
}

// The latencies of 8,192 ranks are those of a tree, not of a ring.
TEST(LinkBounds, ManyRanksDoNotWaitForARingOfLatencies) {
  const Times times = TimesOf({.data = 8192, .nodes = 1024});
  const Times few = TimesOf({.data = 64, .nodes = 8});
  EXPECT_GE(times.predicted, times.needed);
  EXPECT_LT(times.predicted, 1.1 * few.predicted);
}

}  // namespace
}  // namespace troupe
