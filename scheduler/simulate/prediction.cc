#include "scheduler/simulate/prediction.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "proto/plan/memory.h"
#include "proto/timeline.pb.h"
#include "scheduler/simulate/cost_model.h"
#include "scheduler/simulate/rates.h"
#include "scheduler/simulate/scratch_bytes.h"
#include "scheduler/simulate/simulate.h"

namespace troupe {
namespace {

constexpr double kNs = 1e-9;

bool IsNetwork(Lane lane) {
  return lane == COLLECTIVE || lane == ACTIVATIONS || lane == GRADIENTS;
}

// Time in which the rank communicates and does not compute.
double ExposedSeconds(const RankTimeline& rank) {
  // +1 and -1 where a span begins and ends, for either sort of lane.
  struct Change {
    int compute = 0;
    int network = 0;
  };
  std::map<int64_t, Change> changes;
  for (const Span& span : rank.spans()) {
    const bool network = IsNetwork(span.lane());
    if (!network && span.lane() != COMPUTE) continue;
    int Change::*const which = network ? &Change::network : &Change::compute;
    changes[span.start_ns()].*which += 1;
    changes[span.end_ns()].*which -= 1;
  }
  int64_t exposed = 0;
  int64_t before = 0;
  Change active;
  for (const auto& [time, change] : changes) {
    if (active.network > 0 && active.compute == 0) exposed += time - before;
    active.network += change.network;
    active.compute += change.compute;
    before = time;
  }
  return static_cast<double>(exposed) * kNs;
}

double ComputeSeconds(const RankTimeline& rank) {
  int64_t busy = 0;
  for (const Span& span : rank.spans()) {
    if (span.lane() == COMPUTE) busy += span.end_ns() - span.start_ns();
  }
  return static_cast<double>(busy) * kNs;
}

double StepSeconds(const Timeline& timeline) {
  int64_t end = 0;
  for (const RankTimeline& rank : timeline.ranks()) {
    for (const Span& span : rank.spans()) end = std::max(end, span.end_ns());
  }
  return static_cast<double>(end) * kNs;
}

// On a CPU worker all but NVMe is memory of the process, on a GPU worker what
// is not on the GPU either.
int64_t ResidentBytes(const RankPrediction& rank,
                      const WorkerDescription& worker) {
  int64_t bytes = worker.process_bytes() + rank.scratch_bytes();
  for (const MemoryItem& item : rank.memory()) {
    const bool on_gpu = item.tier() == DEVICE && worker.has_gpu();
    if (item.tier() != NVME && !on_gpu) bytes += item.bytes();
  }
  return bytes;
}

const Program& TrainProgram(const RankPlan& rank) {
  for (const Program& program : rank.programs()) {
    if (program.kind() == Program::TRAIN) return program;
  }
  return Program::default_instance();
}

int64_t BytesSent(const Plan& plan, const RankPlan& rank) {
  int64_t bytes = 0;
  for (const Instruction& instruction : TrainProgram(rank).instructions()) {
    const int64_t reduced = CollectiveBytes(plan, instruction);
    if (reduced == 0) continue;
    bytes += AllReduceBytesSent(
        {.bytes = reduced,
         .ranks = plan.groups(instruction.group()).ranks_size()});
  }
  return bytes;
}

// What the rank's compute lane does most: its name and its seconds.
struct Share {
  std::string name;
  double seconds = 0;
};
Share LargestShare(const Plan& plan, const CostModel& costs, int rank) {
  std::map<std::string, double> seconds;
  for (const Instruction& i : TrainProgram(plan.ranks(rank)).instructions()) {
    if (i.lane() != COMPUTE) continue;
    const Cost cost = costs.CostOf(rank, i);
    const bool head = i.has_unit() && plan.units(i.unit()).kind() == Unit::HEAD;
    seconds[head ? "vocabulary projection"
                 : "block forward/backward matrix products"] += cost.matmul;
    seconds["attention"] += cost.attention;
    seconds["memory-bound passes (norms, activations, loss)"] +=
        cost.elementwise;
    seconds["optimizer"] += cost.optimizer;
    seconds["overhead of instructions"] += cost.overhead;
  }
  Share largest;
  for (const auto& [name, spent] : seconds) {
    if (spent > largest.seconds) largest = {name, spent};
  }
  return largest;
}

// What people should know about the machines: cores that are shared, rates that
// nobody measured.
std::string Remarks(const CostModel& costs,
                    const std::vector<WorkerDescription>& workers) {
  std::string remarks;
  std::map<std::string, int> threads;
  std::map<std::string, int> cores;
  for (const WorkerDescription& worker : workers) {
    threads[worker.host()] += std::max(1, worker.threads());
    cores[worker.host()] = std::max(cores[worker.host()], worker.host_cores());
  }
  for (const auto& [host, count] : threads) {
    if (cores[host] == 0 || count <= cores[host]) continue;
    absl::StrAppend(&remarks, "; ", count, " threads share the ", cores[host],
                    " cores of ", host.empty() ? "the host" : host);
  }
  if (costs.uses_default()) {
    absl::StrAppend(&remarks,
                    "; from conservative default rates, since a worker sent "
                    "no calibration");
  }
  return remarks;
}

std::string LimitedBy(const Plan& plan, const CostModel& costs,
                      const Prediction& prediction) {
  const RankPrediction* busiest = &prediction.ranks(0);
  for (const RankPrediction& rank : prediction.ranks()) {
    if (rank.compute_seconds() > busiest->compute_seconds()) busiest = &rank;
  }
  const double step = prediction.step_seconds();
  const double compute = busiest->compute_seconds() / step;
  const double exposed = busiest->exposed_communication_seconds() / step;
  if (exposed > compute) {
    return absl::StrFormat(
        "communication: %.0f %% of the step waits for the network, %.0f %% "
        "computes",
        100 * exposed, 100 * compute);
  }
  const Share largest = LargestShare(plan, costs, busiest->rank());
  return absl::StrFormat(
      "compute: %.0f %% of the step; largest share: %s, %.0f %%", 100 * compute,
      largest.name, 100 * largest.seconds / step);
}

}  // namespace

Prediction Predict(const Plan& plan,
                   const std::vector<WorkerDescription>& workers) {
  const CostModel costs(plan, workers);
  const Timeline timeline = PredictTimeline(plan, workers);
  Prediction prediction;
  for (int r = 0; r < plan.ranks_size(); ++r) {
    const RankTimeline& spans = timeline.ranks(r);
    RankPrediction& rank = *prediction.add_ranks();
    rank.set_rank(r);
    for (MemoryItem& item : MemoryItems(plan.ranks(r))) {
      *rank.add_memory() = std::move(item);
    }
    *rank.mutable_budgets() = workers[r].budgets();
    if (!workers[r].has_gpu()) {
      rank.set_scratch_bytes(
          ScratchBytesOf(plan, workers[r].threads()).total());
    }
    rank.set_resident_bytes(ResidentBytes(rank, workers[r]));
    rank.set_bytes_sent_per_step(BytesSent(plan, plan.ranks(r)));
    rank.set_compute_seconds(ComputeSeconds(spans));
    rank.set_exposed_communication_seconds(ExposedSeconds(spans));
  }
  const double step = StepSeconds(timeline);
  const double tokens =
      static_cast<double>(plan.derived().tokens_per_step()) / step;
  prediction.set_step_seconds(step);
  prediction.set_tokens_per_second(tokens);
  prediction.set_peak_flops_per_second(costs.PeakFlopsPerSecond());
  prediction.set_model_flops_utilization(
      tokens * plan.derived().model_flops_per_token() /
      prediction.peak_flops_per_second());
  prediction.set_limited_by(LimitedBy(plan, costs, prediction) +
                            Remarks(costs, workers));
  return prediction;
}

}  // namespace troupe
