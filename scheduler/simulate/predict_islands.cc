#include "scheduler/simulate/predict_islands.h"

#include <algorithm>

#include "proto/plan/at_rest.h"
#include "proto/plan/find_program.h"
#include "proto/plan/islands.h"
#include "proto/plan/precision.h"
#include "proto/plan/roles.h"
#include "proto/plan/trained.h"
#include "scheduler/simulate/cost_model.h"
#include "scheduler/simulate/rates.h"
#include "scheduler/simulate/simulate.h"

namespace troupe {
namespace {

constexpr double kSecondsOfNs = 1e-9;

// Steps of exchanges that are simulated by themselves; of more fragments the
// first ones stand for all.
constexpr int kSimulatedMost = 4;

double StepSeconds(const Plan& plan,
                   const std::vector<WorkerDescription>& workers,
                   const CostModel& costs) {
  return static_cast<double>(PredictStep(plan, workers, costs).period_ns) *
         kSecondsOfNs;
}

int64_t AllReduceBytes(const Plan& plan, int64_t bytes) {
  return CollectiveBytesSent({.bytes = bytes,
                              .ranks = IslandsOf(plan.job().parallelism()),
                              .collective = ALL_REDUCE});
}

// One of a round, not the one after the last step.
bool IsExchange(const Instruction& instruction) {
  return instruction.kind() == Instruction::OUTER_REDUCE &&
         instruction.when().every() > 0;
}

}  // namespace

int64_t IslandBytesSent(const Plan& plan, int rank) {
  int64_t bytes = 0;
  for (const Instruction& instruction :
       FindProgram(RoleOf(plan, rank), Program::TRAIN)->instructions()) {
    if (!IsExchange(instruction)) continue;
    bytes += AllReduceBytes(plan, CollectiveBytes(plan, rank, instruction));
  }
  return bytes;
}

int64_t DataParallelBytesSent(const Plan& plan, int rank) {
  int64_t bytes = 0;
  for (const Placement& placement : RoleOf(plan, rank).placements()) {
    bytes += AllReduceBytes(
        plan, LargestTrainedAtRest(plan, placement, rank) *
                  BytesOfElement(GradientType(plan.job().training())));
  }
  return plan.job().islands().every() * bytes;
}

IslandsPrediction PredictIslands(
    const Plan& plan, const std::vector<WorkerDescription>& workers) {
  CostModel costs(plan, workers);
  IslandsPrediction prediction;
  prediction.set_every(plan.job().islands().every());
  costs.Count(CostModel::Rare::kNone);
  const double quiet = StepSeconds(plan, workers, costs);
  prediction.set_quiet_step_seconds(quiet);
  const IslandsSpec& islands = plan.job().islands();
  const int simulated = std::min(islands.fragments(), kSimulatedMost);
  double waited = 0;
  for (int f = 0; f < simulated; ++f) {
    costs.Count(CostModel::Rare::kOne, WhenExchanged(islands, f).offset());
    waited += std::max(0.0, StepSeconds(plan, workers, costs) - quiet);
  }
  prediction.set_waited_seconds(waited * islands.fragments() / simulated);
  for (const Role& role : plan.roles()) {
    const int rank = FirstRankOf(plan.mesh(), role);
    double seconds = 0;
    for (const Instruction& instruction :
         FindProgram(role, Program::TRAIN)->instructions()) {
      if (!IsExchange(instruction)) continue;
      costs.Count(CostModel::Rare::kOne, instruction.when().offset());
      seconds += costs.CostOf(rank, instruction).total();
    }
    prediction.set_exchange_seconds(
        std::max(prediction.exchange_seconds(), seconds));
    prediction.set_bytes_sent(
        std::max(prediction.bytes_sent(), IslandBytesSent(plan, rank)));
    prediction.set_data_parallel_bytes(std::max(
        prediction.data_parallel_bytes(), DataParallelBytesSent(plan, rank)));
  }
  return prediction;
}

}  // namespace troupe
