#include "scheduler/simulate/prediction.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/types/optional.h"
#include "proto/plan/bf16_gain.h"
#include "proto/plan/expert_load.h"
#include "proto/plan/find_program.h"
#include "proto/plan/group_staging.h"
#include "proto/plan/groups.h"
#include "proto/plan/islands.h"
#include "proto/plan/lanes.h"
#include "proto/plan/machine_pace.h"
#include "proto/plan/meeting.h"
#include "proto/plan/memory.h"
#include "proto/plan/mesh.h"
#include "proto/plan/precision.h"
#include "proto/plan/roles.h"
#include "proto/plan/served.h"
#include "proto/plan/tier_traffic.h"
#include "proto/plan/utilization.h"
#include "proto/plan/way_bytes.h"
#include "scheduler/simulate/cost_model.h"
#include "scheduler/simulate/datasheet_peak.h"
#include "scheduler/simulate/exchanges.h"
#include "scheduler/simulate/gpu_scratch.h"
#include "scheduler/simulate/place_seconds.h"
#include "scheduler/simulate/predict_islands.h"
#include "scheduler/simulate/rates.h"
#include "scheduler/simulate/scratch_bytes.h"
#include "scheduler/simulate/simulate.h"
#include "scheduler/simulate/topology.h"
#include "scheduler/simulate/turn_rates.h"
#include "scheduler/simulate/usage.h"

namespace troupe {
namespace {

constexpr double kNs = 1e-9;
// Of the ranks' time.
constexpr double kBubbleWorthSaying = 0.05;

// On a CPU worker all but NVMe is memory of the process, on a GPU worker what
// is not on the GPU either.
int64_t ResidentBytes(const RankPrediction& rank,
                      const WorkerDescription& worker) {
  int64_t bytes = worker.process_bytes() + kRankBytes + rank.scratch_bytes();
  for (const MemoryItem& item : rank.memory()) {
    const bool on_gpu = item.tier() == DEVICE && worker.has_gpu();
    if (item.tier() != NVME && !on_gpu) bytes += item.bytes();
  }
  return bytes;
}

// Of the groups whose blocks ranks of the role pack (proto/plan/way_bytes.h).
int64_t PackingBytes(const Plan& plan, const Role& role) {
  int64_t bytes = 0;
  for (const int index : MeetingGroups(role)) {
    const auto& ways = plan.groups(index).ways();
    const bool packs =
        std::any_of(ways.begin(), ways.end(), [](const Group::Way& way) {
          return !way.steps().empty() && PacksBlocks(way.collective());
        });
    if (packs) bytes += kLevelScratchBytes;
  }
  return bytes;
}

const Program& ProgramOfStep(const Role& role) {
  const Program* const program = StepProgram(role);
  return program == nullptr ? Program::default_instance() : *program;
}

// In the mean of all steps.
int64_t BytesSent(const Plan& plan, int rank) {
  int64_t bytes = 0;
  int64_t rare = 0;  // in as many steps as islands go without an exchange
  for (const Instruction& instruction :
       ProgramOfStep(RoleOf(plan, rank)).instructions()) {
    if (instruction.kind() == Instruction::SEND) {
      bytes += TransferBytes(plan, instruction);
    }
    bytes += ServedBytesSent(plan, rank, instruction);
    bytes += TurnBytesSent(plan, rank, instruction);
    const int64_t reduced = CollectiveBytes(plan, rank, instruction);
    if (reduced == 0) continue;
    if (instruction.has_when() && instruction.when().every() == 0) continue;
    (instruction.has_when() ? rare : bytes) += CollectiveBytesSent(
        {.bytes = reduced,
         .ranks = GroupSize(plan.mesh(), plan.groups(instruction.group())),
         .collective = CollectiveOf(instruction)});
  }
  return bytes + rare / std::max<int64_t>(1, plan.job().islands().every());
}

// What the rank's compute lane does most, and what part of all it does that is.
struct Share {
  std::string name;
  double part = 0;
};
Share LargestShare(const Plan& plan, const CostModel& costs, int rank) {
  std::map<std::string, double> seconds;
  const Program& program = ProgramOfStep(RoleOf(plan, rank));
  for (const Instruction& i : program.instructions()) {
    if (KindOfLane(plan.lanes(), i.lane()) != Lane::COMPUTE) continue;
    const Cost cost = costs.CostOf(rank, i);
    const bool head = i.has_unit() && plan.units(i.unit()).kind() == Unit::HEAD;
    seconds[head ? "vocabulary projection"
                 : "block forward/backward matrix products"] += cost.matmul;
    seconds["attention"] += cost.attention;
    seconds["memory-bound passes (norms, activations, loss)"] +=
        cost.elementwise;
    seconds["optimizer"] += cost.optimizer;
    seconds["given times of synthetic units"] += cost.waiting;
    seconds["overhead of instructions"] += cost.overhead;
  }
  Share largest;
  double all = 0;
  for (const auto& [name, spent] : seconds) {
    if (spent > largest.part) largest = {name, spent};
    all += spent;
  }
  if (all > 0) largest.part /= all;
  return largest;
}

// After how many steps copies are made of the state: as the job says, or so
// seldom that they take this share of the time.
constexpr double kKeepShareMax = 0.01;
int64_t KeepEvery(const RecoverySpec& recovery, const Prediction& prediction) {
  int64_t every = 0;
  if (absl::SimpleAtoi(recovery.every(), &every)) return every;
  if (!(prediction.step_seconds() > 0)) return 1;
  const double steps =
      prediction.keep_seconds() / (kKeepShareMax * prediction.step_seconds());
  return std::max<int64_t>(1, static_cast<int64_t>(std::ceil(steps)));
}

// Of the worker that loses most by bf16, where f32 is faster.
std::string Bf16Remark(const std::vector<WorkerDescription>& workers) {
  Bf16Gain least;
  for (const WorkerDescription& worker : workers) {
    const Bf16Gain gain = Bf16GainOf(worker.calibration());
    if (gain.products < least.products) least = gain;
  }
  const std::string loss = Bf16LossText(least);
  if (loss.empty()) return "";
  return absl::StrCat("; ", loss,
                      ": bf16 saves memory here, f32 would be faster");
}

// What fp16 is good for on processors, which multiply it in f32. GPUs, of which
// a job has all workers or none, have instructions for it.
std::string Fp16Remark(const std::vector<WorkerDescription>& workers) {
  bool instructions = false;
  for (const WorkerDescription& worker : workers) {
    if (worker.has_gpu()) return "";
    instructions |= Bf16GainOf(worker.calibration()).has_instructions();
  }
  return absl::StrCat(
      "; products in fp16 are computed in f32: fp16 saves memory here, ",
      instructions ? "bf16 would be faster" : "not time");
}

// What people should know about the machines: cores that are shared, rates that
// nobody measured, a precision that costs time.
std::string Remarks(const Plan& plan, const CostModel& costs,
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
  const ElementType type = ComputeType(plan.job().training());
  if (type == BF16) absl::StrAppend(&remarks, Bf16Remark(workers));
  if (type == F16) absl::StrAppend(&remarks, Fp16Remark(workers));
  return remarks;
}

// Ranks that compute layers, of which bubbles are: servers wait by design.
int ComputingRanks(const Plan& plan, const Prediction& prediction) {
  return static_cast<int>(std::count_if(prediction.ranks().begin(),
                                        prediction.ranks().end(),
                                        [&plan](const RankPrediction& of) {
                                          return !IsServer(plan, of.rank());
                                        }));
}

// What ranks of a pipeline wait for each other, where more is lost so than by
// communication and for tiers.
std::string BubbleText(const Plan& plan, const Prediction& prediction,
                       const std::vector<Usage>& usages) {
  double exposed = 0;
  for (size_t rank = 0; rank < usages.size(); ++rank) {
    if (IsServer(plan, static_cast<int>(rank))) continue;
    exposed += usages[rank].exposed_seconds + usages[rank].tier_seconds;
  }
  exposed /= ComputingRanks(plan, prediction) * prediction.step_seconds();
  const double waits = prediction.bubble_of_total() - exposed;
  const bool pipeline = AxisSize(plan.mesh(), "pipeline") > 1;
  if (!pipeline || waits < kBubbleWorthSaying || waits < exposed) return "";
  return absl::StrFormat(
      "pipeline bubble: ranks wait for each other %.0f %% of the time; ",
      100 * waits);
}

// Idle time of the compute lanes, over all of it and over the rest.
void SetBubble(const Plan& plan, Prediction& prediction) {
  double busy = 0;
  for (const RankPrediction& rank : prediction.ranks()) {
    if (!IsServer(plan, rank.rank())) busy += rank.compute_seconds();
  }
  const double all =
      ComputingRanks(plan, prediction) * prediction.step_seconds();
  if (!(busy > 0)) return;
  // Roundings of the period may be nanoseconds short of what is done in it.
  const double idle = std::max(0.0, all - busy);
  prediction.set_bubble_of_total(idle / all);
  prediction.set_bubble_of_ideal(idle / busy);
}

// `usages` by rank.
std::string LimitedBy(const Plan& plan, const CostModel& costs,
                      const Prediction& prediction,
                      const std::vector<Usage>& usages) {
  const RankPrediction* busiest = &prediction.ranks(0);
  for (const RankPrediction& rank : prediction.ranks()) {
    if (rank.compute_seconds() > busiest->compute_seconds()) busiest = &rank;
  }
  const double step = prediction.step_seconds();
  if (!(step > 0)) return "nothing: no instruction takes any time";
  const double compute = busiest->compute_seconds() / step;
  const double exposed = busiest->exposed_communication_seconds() / step;
  if (exposed > compute) {
    return absl::StrFormat(
        "communication: %.0f %% of the step waits for the network, %.0f %% "
        "computes",
        100 * exposed, 100 * compute);
  }
  const double tiers = usages[busiest->rank()].tier_seconds / step;
  if (tiers > compute) {
    return absl::StrFormat(
        "tiers of memory: %.0f %% of the step waits for what moves between "
        "them or for the optimizer on the host, %.0f %% computes",
        100 * tiers, 100 * compute);
  }
  const Share largest = LargestShare(plan, costs, busiest->rank());
  return BubbleText(plan, prediction, usages) +
         (tiers < kBubbleWorthSaying
              ? ""
              : absl::StrFormat("tiers of memory: %.0f %% of the step waits "
                                "for them; ",
                                100 * tiers)) +
         absl::StrFormat(
             "compute: %.0f %% of the step; largest share: %s, %.0f %%",
             100 * compute, largest.name, 100 * compute * largest.part);
}

// What stages take where they lie, where that is not the same everywhere.
void PredictStages(const Plan& plan,
                   const std::vector<WorkerDescription>& workers,
                   const CostModel& costs, Prediction& prediction) {
  const PlaceSeconds places = UnequalPlaces(plan, costs);
  if (places.empty()) return;
  for (const Stage& stage : plan.stages()) {
    SlowestRank slowest;
    for (const int place : stage.pipeline_ranks()) {
      const SlowestRank there = SlowestOf(places[place], stage);
      if (there.seconds > slowest.seconds) slowest = there;
    }
    const WorkerDescription& worker = workers[slowest.rank];
    StagePrediction& of_stage = *prediction.add_stages();
    of_stage.set_seconds(slowest.seconds);
    of_stage.set_device(absl::StrCat(
        worker.gpu().name().empty() ? worker.device() : worker.gpu().name(),
        " of ", worker.name()));
  }
}

// Of all ranks that do the same, on machines that are alike.
RankPrediction PredictRank(const Plan& plan, const WorkerDescription& worker,
                           const RankTimes& times, const Usage& usage) {
  const Role& role = RoleOf(plan, times.rank);
  RankPrediction prediction;
  for (MemoryItem& item : MemoryItems(role)) {
    *prediction.add_memory() = std::move(item);
  }
  int64_t peak = BytesIn(role, DEVICE);
  if (worker.has_gpu()) {
    for (MemoryItem& item : GpuScratchItems(plan)) {
      peak += item.bytes();
      *prediction.add_memory() = std::move(item);
    }
  } else {
    const Bf16Gain gain = Bf16GainOf(worker.calibration());
    prediction.set_scratch_bytes(
        ScratchBytesOf(plan, {.threads = worker.threads(),
                              .bf16_instructions = gain.has_instructions()})
            .total());
  }
  prediction.set_peak_bytes(peak);
  prediction.set_bytes_sent_per_step(BytesSent(plan, times.rank));
  prediction.set_compute_seconds(usage.compute_seconds);
  prediction.set_exposed_communication_seconds(usage.exposed_seconds);
  const Program& program = ProgramOfStep(role);
  if (!MovesBetweenTiers(program)) return prediction;
  const RankTimeline timeline =
      TimelineOf(plan, times.rank, times, StepKind(plan.job()));
  for (TierTraffic& tier : TrafficOf(program, plan.lanes(), timeline)) {
    *prediction.add_tiers() = std::move(tier);
  }
  return prediction;
}

// A rank's part of a step of the job, which is one replica's.
void ScaleToShare(double share, RankPrediction& rank) {
  rank.set_bytes_sent_per_step(static_cast<int64_t>(
      std::llround(static_cast<double>(rank.bytes_sent_per_step()) * share)));
  rank.set_compute_seconds(rank.compute_seconds() * share);
  rank.set_exposed_communication_seconds(rank.exposed_communication_seconds() *
                                         share);
}

}  // namespace

Prediction Predict(const Plan& plan,
                   const std::vector<WorkerDescription>& workers,
                   Timeline* timeline) {
  const CostModel costs(plan, workers);
  SteadyStep step = PredictStep(plan, workers, costs);
  if (timeline != nullptr) *timeline = StepTimeline(plan, step);
  absl::optional<TurnRates> turns;
  if (plan.derived().takes_turns()) {
    turns = RatesOfTurns(plan, step);
    step.period_ns = std::llround(turns->step_seconds / kNs);
  }
  Prediction prediction;
  std::vector<RankPrediction> alike;
  std::vector<Usage> usages_alike;
  for (const RankTimes& times : step.ranks) {
    usages_alike.push_back(
        UsageOf(ProgramOfStep(RoleOf(plan, times.rank)), plan.lanes(), times));
    alike.push_back(
        PredictRank(plan, workers[times.rank], times, usages_alike.back()));
  }
  std::vector<Usage> usages;
  GroupStaging staging(plan, plan.groups());
  std::map<const Role*, int64_t> packing;
  for (const Role& role : plan.roles()) {
    packing[&role] = PackingBytes(plan, role);
  }
  for (size_t r = 0; r < step.like.size(); ++r) {
    usages.push_back(usages_alike[step.like[r]]);
    RankPrediction& rank = *prediction.add_ranks() = alike[step.like[r]];
    rank.set_rank(static_cast<int>(r));
    if (turns.has_value()) ScaleToShare(turns->shares[r], rank);
    const int64_t staged =
        staging.BytesOf(RoleOf(plan, rank.rank()), rank.rank());
    if (staged > 0) *rank.add_memory() = GroupStagingItem(staged);
    *rank.mutable_budgets() = workers[r].budgets();
    // Of hardware that nobody has started a worker on, it is not known.
    if (workers[r].process_bytes() == 0) continue;
    rank.set_resident_bytes(ResidentBytes(rank, workers[r]) +
                            packing.at(&RoleOf(plan, rank.rank())));
  }
  prediction.set_step_seconds(static_cast<double>(step.period_ns) * kNs);
  if (HasIslands(plan)) {
    IslandsPrediction& islands = *prediction.mutable_islands();
    islands = PredictIslands(plan, workers);
    prediction.set_step_seconds(islands.quiet_step_seconds() +
                                islands.waited_seconds() /
                                    static_cast<double>(islands.every()));
  }
  prediction.set_peak_flops_per_second(costs.PeakFlopsPerSecond());
  prediction.set_datasheet_flops_per_second(DatasheetPeak(
      ComputeType(plan.job().training()),
      absl::MakeConstSpan(workers).first(step.like.size()), costs.seats()));
  if (step.period_ns > 0) {
    prediction.set_tokens_per_second(
        static_cast<double>(plan.derived().tokens_per_step()) /
        prediction.step_seconds());
    prediction.set_model_flops_utilization(ModelFlopsUtilization(
        prediction.tokens_per_second(), plan.derived().model_flops_per_token(),
        UtilizationPeak(prediction)));
  }
  if (const int64_t keep_ns = PredictKeepNs(plan, workers, costs);
      keep_ns > 0) {
    prediction.set_keep_seconds(static_cast<double>(keep_ns) * kNs);
    prediction.set_keep_every(KeepEvery(plan.job().recovery(), prediction));
  }
  SetBubble(plan, prediction);
  PredictStages(plan, workers, costs, prediction);
  for (LinkUsed& link :
       LinksUsed(absl::MakeConstSpan(workers).first(step.like.size()))) {
    *prediction.add_links() = std::move(link);
  }
  for (ExchangePrediction& exchange : PredictExchanges(plan, costs)) {
    *prediction.add_exchanges() = std::move(exchange);
  }
  std::vector<const WorkerDescription*> machines;
  for (const WorkerDescription& worker : workers) machines.push_back(&worker);
  if (const auto pace = PaceOf(machines); pace.has_value()) {
    *prediction.mutable_machine() = *pace;
  }
  prediction.set_limited_by(
      (turns.has_value() ? turns->limited_by
                         : LimitedBy(plan, costs, prediction, usages)) +
      Remarks(plan, costs, workers) +
      (step.one_for_each_role
           ? "; too many machines differ, so one of each stage was taken for "
             "all of it"
           : ""));
  return prediction;
}

double WorstRoutingSeconds(const std::vector<WorkerDescription>& workers,
                           Plan& plan) {
  const auto expected = plan.tables();
  bool shared = false;
  for (UnitTable& table : *plan.mutable_tables()) {
    const int ranks = RanksOfExperts(table);
    if (ranks == 0) continue;
    ExpectRows(ranks, table);
    shared = true;
  }
  if (!shared) return 0;
  const SteadyStep step = PredictStep(plan, workers, CostModel(plan, workers));
  *plan.mutable_tables() = expected;
  return static_cast<double>(step.period_ns) * kNs;
}

}  // namespace troupe
