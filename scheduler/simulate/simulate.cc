#include "scheduler/simulate/simulate.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "proto/plan/find_program.h"
#include "proto/plan/mesh.h"
#include "proto/plan/span.h"
#include "scheduler/simulate/cost_model.h"
#include "scheduler/simulate/seats.h"

namespace troupe {
namespace {

// So many steps in a row must last equally long; where steps overlap, as many
// more as there are ranks in a pipeline: what one waits for has reached all of
// them by then.
constexpr int kEqualSteps = 2;
constexpr int kEqualWithin = 1000;  // one part in so many
// Past so many times that, the mean of the later half must do.
constexpr int kPatience = 4;

bool HasFill(const Plan& plan) {
  return std::any_of(plan.ranks().begin(), plan.ranks().end(),
                     [](const RankPlan& rank) {
                       return FindProgram(rank, Program::FILL) != nullptr;
                     });
}

bool LastAreEqual(const std::vector<int64_t>& ends, int steps) {
  const int last = static_cast<int>(ends.size()) - 1;
  if (last < steps) return false;
  const int64_t period = ends[last] - ends[last - 1];
  for (int k = last - steps + 1; k < last; ++k) {
    const int64_t other = ends[k] - ends[k - 1];
    if (std::abs(other - period) > period / kEqualWithin) return false;
  }
  return true;
}

// Of a step, once `steps` in a row were equal, or as it looks without that.
int64_t PeriodOf(const std::vector<int64_t>& ends, int steps) {
  if (ends.empty()) return 0;
  if (ends.size() == 1) return ends.back();
  const int last = static_cast<int>(ends.size()) - 1;
  const int from = LastAreEqual(ends, steps) ? last - 1 : last / 2;
  return (ends[last] - ends[from]) / (last - from);
}

SteadyStep RunUntilSteady(const Plan& plan, const InstructionEffort& effort,
                          Seats seats) {
  RunOptions options = {.seats = std::move(seats), .is_enough = nullptr};
  const int pipeline = AxisSize(plan.mesh(), "pipeline");
  const bool overlap = plan.derived().report_lag() > 0 || HasFill(plan);
  const int equal = kEqualSteps + (overlap ? pipeline : 0);
  // Where all ranks have one program and end it together, a step is as good as
  // any. Ranks of a pipeline have different ones, and begin at different times.
  if (overlap || pipeline > 1) {
    options.first = Program::FILL;
    options.runs_max = kPatience * equal;
    options.is_enough = [&](const std::vector<int64_t>& ends) {
      return LastAreEqual(ends, equal);
    };
  }
  ProgramsRun run = RunPrograms(plan, effort, options);
  return {.period_ns = PeriodOf(run.ends, equal),
          .ranks = std::move(run.ranks)};
}

Timeline TimelineOf(const Plan& plan, Program::Kind kind,
                    const std::vector<RankTimes>& ranks) {
  Timeline timeline;
  timeline.set_predicted(true);
  for (const RankTimes& times : ranks) {
    RankTimeline& rank = *timeline.add_ranks();
    rank.set_rank(times.rank);
    const Program& program = *FindProgram(plan.ranks(times.rank), kind);
    for (int i = 0; i < program.instructions_size(); ++i) {
      Span& span = *rank.add_spans() = SpanOf(program.instructions(i), i);
      span.set_start_ns(times.instructions[i].start);
      span.set_end_ns(times.instructions[i].end);
    }
  }
  return timeline;
}

InstructionEffort Plain(const InstructionTime& time) {
  return [&time](int rank, const Instruction& instruction) {
    return Effort{.other_ns = time(rank, instruction)};
  };
}

int64_t Nanoseconds(double seconds) {
  return static_cast<int64_t>(std::llround(seconds * 1e9));
}

}  // namespace

Timeline Simulate(const Plan& plan, Program::Kind kind,
                  const InstructionTime& time) {
  const ProgramsRun run = RunPrograms(
      plan, Plain(time), {.kind = kind, .seats = {}, .is_enough = nullptr});
  return TimelineOf(plan, kind, run.ranks);
}

SteadyStep SimulateSteps(const Plan& plan, const InstructionTime& time) {
  return RunUntilSteady(plan, Plain(time), {});
}

SteadyStep PredictStep(const Plan& plan,
                       const std::vector<WorkerDescription>& workers) {
  const CostModel costs(plan, workers);
  const auto effort = [&](int rank, const Instruction& instruction) {
    const Cost cost = costs.CostOf(rank, instruction);
    const bool computes =
        instruction.lane() == COMPUTE || instruction.lane() == HOST_COMPUTE;
    const double other = computes ? cost.waiting : cost.total();
    return Effort{.compute_ns = Nanoseconds(cost.total() - other),
                  .other_ns = Nanoseconds(other)};
  };
  std::vector<WorkerDescription> used(workers.begin(),
                                      workers.begin() + plan.ranks_size());
  return RunUntilSteady(plan, effort, SeatsOf(used));
}

Timeline PredictTimeline(const Plan& plan,
                         const std::vector<WorkerDescription>& workers) {
  return TimelineOf(plan, Program::TRAIN, PredictStep(plan, workers).ranks);
}

}  // namespace troupe
