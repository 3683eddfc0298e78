// No prediction is faster than the bytes over its links allow: those of each
// rank, and the adapters that ranks of a host share. What each rank has to send
// and receive in a step is counted here from the plan's instructions and the
// hosts of its ranks, without the simulator's code.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "clients/cluster_file/cluster_file.h"
#include "clients/cluster_file/cluster_workers.h"
#include "gtest/gtest.h"
#include "proto/plan/model.h"
#include "proto/plan/ranks_needed.h"
#include "scheduler/layouts/expert_ranks.h"
#include "scheduler/layouts/replicas.h"
#include "scheduler/pipelines/pipelines.h"
#include "scheduler/planner/planner.h"
#include "scheduler/simulate/cost_model.h"
#include "scheduler/simulate/simulate.h"
#include "tests/graphs/skip_graph.h"
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

// Seconds that the busiest link or adapter of the first `ranks` ranks needs for
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

constexpr int kLayers = 6;  // eight units
constexpr int kRanksDrawn = 64;

class Draw {
 public:
  explicit Draw(int seed) : random_(seed) {}

  template <typename T>
  T One(const std::vector<T>& of) {
    return of[random_() % of.size()];
  }
  int Below(int count) { return static_cast<int>(random_() % count); }
  bool Even() { return Below(2) == 0; }

  JobSpec Job() {
    JobSpec job;
    do {
      job = AnyJob();
    } while (RanksNeeded(job) > kRanksDrawn);
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
  JobSpec AnyJob() {
    const int data = One<int>({1, 2, 3, 4});
    const int micro_batches = One<int>({1, 2, 4});
    JobSpec job = SmallJob(data, micro_batches);
    job.mutable_model()->set_num_hidden_layers(kLayers);
    if (Even()) job.mutable_training()->set_gradient_precision("parameters");
    ParallelismSpec& parallelism = *job.mutable_parallelism();
    parallelism.set_zero(One<int>({0, 0, 1, 2, 3, 3}));
    parallelism.set_bucket_megabytes(One<double>({0.5, 25}));
    DrawModel(*job.mutable_model());
    DrawPipeline(job);
    DrawTensor(parallelism);
    DrawContext(parallelism);
    DrawExperts(job);
    DrawStrategies(parallelism);
    DrawSplit(micro_batches, parallelism);
    // Whatever cuts samples has some of each micro-batch.
    const int micro_batch =
        parallelism.has_tensor_method() || !parallelism.strategies().empty()
            ? One<int>({4, 8})
            : 1;
    job.mutable_training()->set_micro_batch_size(micro_batch);
    job.mutable_training()->set_global_batch_size(data * micro_batches *
                                                  micro_batch);
    return job;
  }

  // A Llama, one with experts, or a graph with skips.
  void DrawModel(ModelSpec& model) {
    switch (Below(6)) {
      case 0:
      case 1:
        model.set_architecture("mixtral");
        model.set_num_experts(8);
        model.set_num_experts_per_tok(2);
        break;
      case 2:
        model = SkipModel({.blocks = kLayers,
                           .hidden = 256,
                           .heads = 8,
                           .intermediate = 512,
                           .vocabulary = 1024,
                           .positions = 256,
                           .tied = Even()});
        break;
      default:
        break;
    }
  }

  void DrawPipeline(JobSpec& job) {
    ParallelismSpec& parallelism = *job.mutable_parallelism();
    parallelism.set_pipeline(One<int>({1, 1, 2, 4}));
    if (parallelism.pipeline() == 1) return;
    const Pipeline schedule = One(Pipelines());
    parallelism.set_pipeline_schedule(std::string(schedule.name));
    if (schedule.default_virtual_stages > 1 && Even()) {
      parallelism.set_virtual_stages(One<int>({2, 3, 4}));
    }
    if (schedule.asynchronous || Even()) {
      job.mutable_training()->set_gradient_clipping(0);
    }
  }

  void DrawTensor(ParallelismSpec& parallelism) {
    const int ranks = One<int>({1, 1, 2, 4, 8});
    if (ranks == 1) return;
    parallelism.set_tensor(ranks);
    const std::string method = ranks == 4 ? One<std::string>({"1d", "2d"})
                               : ranks == 8
                                   ? One<std::string>({"1d", "2.5d", "3d"})
                                   : "1d";
    if (method == "1d") {
      parallelism.set_sequence_parallel(Even());
      return;
    }
    parallelism.set_tensor_method(method);
    if (method == "2.5d") parallelism.set_tensor_depth(2);
  }

  void DrawContext(ParallelismSpec& parallelism) {
    if (Even()) return;
    parallelism.set_context(One<int>({2, 4}));
    parallelism.set_context_method(
        One<std::string>({"ulysses", "ring", "ring_self_attention", "usp"}));
    if (parallelism.context_method() == "usp") parallelism.set_ulysses_size(2);
  }

  void DrawExperts(JobSpec& job) {
    if (job.model().num_experts() == 0 || Below(4) == 0) return;
    ParallelismSpec& parallelism = *job.mutable_parallelism();
    const std::vector<int> sizes = ExpertSizes(parallelism);
    if (sizes.empty()) return;
    const int ranks = One(sizes);
    parallelism.set_expert(ranks);
    if (Even()) parallelism.set_expert_slack(1);
  }

  // Blocks, or a stage, by samples in place of columns.
  void DrawStrategies(ParallelismSpec& parallelism) {
    const int ranks = parallelism.tensor();
    const bool may = (ranks == 2 || ranks == 4) &&
                     !parallelism.has_tensor_method() &&
                     !parallelism.has_context();
    if (!may || Even()) return;
    StrategySpec& strategy = *parallelism.add_strategies();
    strategy.set_batch(ranks);
    if (Even()) {
      parallelism.set_batch(2);
      strategy.set_batch(2 * ranks);
    }
    if (parallelism.pipeline() > 1 && Even()) {
      strategy.set_stage(Below(parallelism.pipeline()));
    } else {
      strategy.add_units(One<std::string>({"blocks", "head", "3"}));
    }
  }

  // From one replica to the next.
  void DrawSplit(int micro_batches, ParallelismSpec& parallelism) {
    const int replicas = ReplicasOf(parallelism);
    if (replicas < 2 || micro_batches < 2 || Even()) return;
    for (int d = 0; d < replicas; ++d) {
      parallelism.add_micro_batches(micro_batches);
    }
    const int moved = 1 + Below(micro_batches - 1);
    parallelism.set_micro_batches(0, micro_batches - moved);
    parallelism.set_micro_batches(1, micro_batches + moved);
  }

  std::mt19937 random_;
};

// Of what was planned, so that no kind of draw is refused throughout.
void Count(const JobSpec& job, std::map<std::string, int>& counts) {
  const ParallelismSpec& parallelism = job.parallelism();
  counts["experts over ranks"] += parallelism.expert() > 1;
  counts["strategies"] += !parallelism.strategies().empty();
  for (const char* const method : {"2d", "2.5d", "3d"}) {
    counts[method] += parallelism.tensor_method() == method;
  }
  for (const char* const method :
       {"ulysses", "ring", "ring_self_attention", "usp"}) {
    counts[method] += parallelism.context_method() == method;
  }
  for (const Pipeline& schedule : Pipelines()) {
    counts[std::string(schedule.name)] +=
        parallelism.pipeline_schedule() == schedule.name;
  }
  counts["virtual stages"] += parallelism.virtual_stages() > 1;
  counts["uneven replicas"] += !parallelism.micro_batches().empty();
  counts["skips"] += IsGraph(job.model());
}

// TROUPE_DRAWS sets the number of plans, TROUPE_SEED draws others.
int FromEnvironment(const char* name, int otherwise) {
  const char* const text = std::getenv(name);
  int number = otherwise;
  if (text != nullptr) EXPECT_TRUE(absl::SimpleAtoi(text, &number)) << text;
  return number;
}

TEST(LinkBounds, NoDrawnPlanIsFasterThanItsLinks) {
  const int plans = FromEnvironment("TROUPE_DRAWS", 200);
  Draw draw(FromEnvironment("TROUPE_SEED", 37));
  int planned = 0;
  int bound = 0;  // whose links are what a step takes, or nearly
  std::map<std::string, int> counts;
  for (int drawn = 0; planned < plans; ++drawn) {
    ASSERT_LT(drawn, 5 * plans) << "most draws are refused";
    const JobSpec job = draw.Job();
    const int ranks = RanksNeeded(job);
    const Cluster cluster = draw.ClusterFor(ranks);
    const std::vector<WorkerDescription> workers = WorkersOf(cluster, ranks);
    const absl::StatusOr<Plan> plan = CompilePlan(job, workers);
    if (!plan.ok()) {
      EXPECT_EQ(plan.status().code(), absl::StatusCode::kInvalidArgument)
          << "draw " << drawn << ": " << plan.status() << "\n"
          << job.parallelism().DebugString();
      continue;
    }
    ++planned;
    Count(job, counts);
    const double needed = NeededSeconds(*plan, cluster, workers, ranks);
    const double predicted = plan->prediction().step_seconds();
    // Steps of a pipeline are taken to be steady when they are equal within
    // one part in 1,000.
    const double tolerance = job.parallelism().pipeline() > 1 ? 1e-3 : 1e-6;
    EXPECT_GE(predicted, needed * (1 - tolerance))
        << "draw " << drawn << "\n"
        << job.model().architecture() << "\n"
        << job.parallelism().DebugString() << cluster.kind << ", nodes of "
        << cluster.workers << " with " << cluster.nics << " adapters, "
        << cluster.near_gb_s << " and " << cluster.far_gb_s << " GB/s";
    if (predicted < 1.5 * needed) ++bound;
    // Nor where too many ranks differ, so that one stands for all of its role.
    const SteadyStep for_all =
        PredictStep(*plan, workers, CostModel(*plan, workers), 1);
    EXPECT_TRUE(for_all.one_for_each_role);
    EXPECT_GE(static_cast<double>(for_all.period_ns) * 1e-9,
              needed * (1 - tolerance))
        << "one for each role, draw " << drawn << "\n"
        << job.parallelism().DebugString();
  }
  // Else it would hold of nothing that matters.
  EXPECT_GT(bound, plans / 10);
  for (const auto& [kind, count] : counts) EXPECT_GT(count, 0) << kind;
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
