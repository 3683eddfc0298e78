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
#include "proto/plan/find_program.h"
#include "proto/plan/groups.h"
#include "proto/plan/meeting.h"
#include "proto/plan/precision.h"
#include "proto/plan/ranks_needed.h"
#include "proto/plan/roles.h"
#include "proto/plan/trained.h"
#include "proto/plan/ways.h"
#include "scheduler/planner/planner.h"
#include "scheduler/simulate/cost_model.h"
#include "scheduler/simulate/simulate.h"

namespace troupe {
namespace {

// Of a rank's links.
struct Bytes {
  double far_out = 0;
  double far_in = 0;
  double near_out = 0;
  double near_in = 0;
};

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

class LinkBytes {
 public:
  LinkBytes(const Plan& plan, const std::vector<WorkerDescription>& workers)
      : plan_(plan) {
    for (const WorkerDescription& worker : workers) {
      hosts_.push_back(worker.host());
    }
  }

  Bytes OfStep(int rank) const {
    Bytes bytes;
    const Program* const train =
        FindProgram(RoleOf(plan_, rank), Program::TRAIN);
    if (train == nullptr) return bytes;
    for (const Instruction& instruction : train->instructions()) {
      if (IsTransfer(instruction.kind())) AddTransfer(rank, instruction, bytes);
      if (IsCollective(instruction.kind())) {
        AddCollective(rank, instruction, bytes);
      }
    }
    return bytes;
  }

 private:
  void AddTransfer(int rank, const Instruction& transfer, Bytes& bytes) const {
    const int peer = PeerRank(plan_.mesh(), rank, transfer.peer());
    const bool far = hosts_[peer] != hosts_[rank];
    const auto moved =
        static_cast<double>(plan_.units(transfer.unit()).activation_bytes());
    const bool sends = transfer.kind() == Instruction::SEND;
    (sends ? (far ? bytes.far_out : bytes.near_out)
           : (far ? bytes.far_in : bytes.near_in)) += moved;
  }

  // Of all that its group works on together.
  double WholeOf(int rank, const Instruction& instruction) const {
    const TrainingSpec& training = plan_.job().training();
    const int u = instruction.unit();
    double elements = 0;
    switch (instruction.kind()) {
      case Instruction::EXCHANGE: {
        int64_t most = 0;
        for (const auto& operand : instruction.operands()) {
          most = std::max(most, operand.bytes());
        }
        return static_cast<double>(most);
      }
      case Instruction::GATHER_PARAMETERS: {
        const Placement& placement = *FindPlacement(RoleOf(plan_, rank), u);
        for (int p = 0; p < placement.parts_size(); ++p) {
          if (placement.parts(p).unsharded()) continue;
          elements += static_cast<double>(plan_.units(u).parts(p).elements());
        }
        return elements *
               static_cast<double>(BytesOfElement(ComputeType(training)));
      }
      case Instruction::SCATTER_GRADS:
        elements = static_cast<double>(TrainedElements(plan_.units(u)));
        break;
      case Instruction::REDUCE_GRADS:
        for (int i = 0; i < std::max(1, instruction.unit_count()); ++i) {
          const Placement& placement =
              *FindPlacement(RoleOf(plan_, rank), u + i);
          const int slices =
              placement.has_dealt()
                  ? GroupSize(plan_.mesh(), plan_.groups(placement.dealt()))
                  : 1;
          elements += std::floor(
              static_cast<double>(
                  plan_.units(u + i).parts(instruction.part()).elements()) /
              slices);
        }
        break;
      default:
        return 0;  // a few scalars
    }
    return elements *
           static_cast<double>(BytesOfElement(GradientType(training)));
  }

  // To each rank of a group straight, so many bytes.
  static void AddDirect(double each, double ranks, double here, Bytes& bytes) {
    bytes.far_out += each * (ranks - here);
    bytes.far_in += each * (ranks - here);
    bytes.near_out += each * (here - 1);
    bytes.near_in += each * (here - 1);
  }

  // Within the host all of it, between hosts what is then each member's.
  static void AddLevels(Collective collective, double whole, double ranks,
                        double here, Bytes& bytes) {
    constexpr double kSmall = 64 << 10;
    const double hosts = ranks / here;
    const double piece = whole / here;
    const bool all = collective == ALL_REDUCE;
    const double passes = all ? 2 : 1;
    const double near = passes * whole * (here - 1) / here;
    const double far = all && piece * (hosts - 1) <= kSmall
                           ? piece * (hosts - 1)
                           : passes * piece * (hosts - 1) / hosts;
    bytes.far_out += std::floor(far);
    bytes.far_in += std::floor(far);
    bytes.near_out += std::floor(near);
    bytes.near_in += std::floor(near);
  }

  bool IsNarrow(const Instruction& instruction) const {
    const TrainingSpec& training = plan_.job().training();
    return BytesOfElement(instruction.kind() == Instruction::EXCHANGE
                              ? ComputeType(training)
                              : GradientType(training)) == 2;
  }

  void AddCollective(int rank, const Instruction& instruction,
                     Bytes& bytes) const {
    const Group& group = plan_.groups(instruction.group());
    const std::vector<int> members = MembersOf(plan_.mesh(), group, rank);
    const auto ranks = static_cast<double>(members.size());
    if (members.size() < 2) return;
    const auto at = static_cast<size_t>(
        std::find(members.begin(), members.end(), rank) - members.begin());
    size_t next = members[(at + 1) % members.size()];
    size_t previous = members[(at + members.size() - 1) % members.size()];
    const std::string& host = hosts_[rank];
    const auto here = static_cast<double>(
        std::count_if(members.begin(), members.end(),
                      [&](int other) { return hosts_[other] == host; }));
    const double whole = WholeOf(rank, instruction);
    Collective collective = ALL_REDUCE;
    if (instruction.kind() == Instruction::SCATTER_GRADS) {
      collective = REDUCE_SCATTER;
    } else if (instruction.kind() == Instruction::GATHER_PARAMETERS) {
      collective = ALL_GATHER;
    } else if (instruction.kind() == Instruction::EXCHANGE) {
      collective = instruction.exchange().collective();
    }
    const Group::Way* const way =
        WayOf(group, collective == REDUCE ? ALL_REDUCE : collective,
              static_cast<int64_t>(whole));
    if (way != nullptr) {
      EXPECT_NE(way->row(), "flat");
      return AddLevels(way->collective(), whole, ranks, here, bytes);
    }
    const int number = GroupNumber(plan_.mesh(), group, rank);
    const std::string& backend = CarrierOf(group, number).backend();
    if (collective == ALL_TO_ALL) {
      return AddDirect(whole / ranks, ranks, here, bytes);
    }
    double passes = 1;
    if (collective == ALL_REDUCE) passes = 2;
    if (collective == REDUCE) passes = (ranks + 1) / ranks;
    if (backend == "gloo" && collective != SHIFT) {
      constexpr double kSmall = 64 << 10;
      const bool sums = collective != ALL_GATHER && collective != BROADCAST;
      const bool all = collective == ALL_REDUCE || collective == REDUCE;
      if (all && whole * (ranks - 1) <= kSmall) {
        // The root receives them; everybody is that as often.
        const double roots = collective == REDUCE ? ranks : 1;
        return AddDirect(whole / roots, ranks, here, bytes);
      }
      if (collective == BROADCAST && (ranks == 2 || whole <= kSmall)) {
        return AddDirect(whole / ranks, ranks, here, bytes);
      }
      if (!all && collective != BROADCAST &&
          std::floor(whole / ranks) * (ranks - 1) <= kSmall) {
        return AddDirect(whole / ranks, ranks, here, bytes);
      }
      if (collective == REDUCE) {
        AddDirect(whole / ranks / ranks, ranks, here, bytes);
        passes = 1;
      }
      if (sums && IsNarrow(instruction)) {
        AddDirect(whole / ranks, ranks, here, bytes);
        passes -= 1;
      }
    }
    const double whole_passes = std::floor(passes);
    double ring =
        whole_passes * std::floor(whole * (ranks - 1) / ranks) +
        std::floor((passes - whole_passes) * whole * (ranks - 1) / ranks);
    if (collective == SHIFT) {
      ring = whole;
      if (instruction.exchange().backward()) std::swap(next, previous);
    }
    if (backend == "nccl" && collective != SHIFT && here < ranks) {
      bytes.far_out += ring / here;
      bytes.far_in += ring / here;
      bytes.near_out += ring * (here - 1) / here;
      bytes.near_in += ring * (here - 1) / here;
      return;
    }
    (hosts_[next] == host ? bytes.near_out : bytes.far_out) += ring;
    (hosts_[previous] == host ? bytes.near_in : bytes.far_in) += ring;
  }

  const Plan& plan_;
  std::vector<std::string> hosts_;
};

// Seconds that the busiest link or adapter of the first so many ranks needs for
// its bytes.
double NeededSeconds(const Plan& plan, const Cluster& cluster,
                     const std::vector<WorkerDescription>& workers, int ranks) {
  const LinkBytes links(plan, workers);
  double seconds = 0;
  std::map<std::pair<int, int>, Bytes> adapters;  // by node and number there
  for (int r = 0; r < ranks; ++r) {
    const Bytes bytes = links.OfStep(r);
    const std::vector<int> nics = NicsOf(cluster, r % cluster.workers);
    const double parts = std::max<double>(1, static_cast<double>(nics.size()));
    seconds = std::max(
        {seconds,
         std::max(bytes.far_out, bytes.far_in) /
             (parts * cluster.far_gb_s * 1e9),
         std::max(bytes.near_out, bytes.near_in) / (cluster.near_gb_s * 1e9)});
    for (const int nic : nics) {
      Bytes& adapter = adapters[{r / cluster.workers, nic}];
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
