#include "scheduler/simulate/simulate.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <utility>

#include "proto/plan/copies.h"
#include "proto/plan/find_program.h"
#include "proto/plan/lanes.h"
#include "proto/plan/mesh.h"
#include "proto/plan/roles.h"
#include "proto/plan/span.h"
#include "proto/plan/traced_ranks.h"
#include "scheduler/simulate/adapters.h"
#include "scheduler/simulate/cost_model.h"
#include "scheduler/simulate/effort.h"
#include "scheduler/simulate/seats.h"
#include "scheduler/simulate/tier_rates.h"

namespace troupe {
namespace {

// How many steps in a row must last equally long; where steps overlap, as many
// more as there are ranks in a pipeline: what one waits for has reached all of
// them by then.
constexpr int kEqualSteps = 2;
constexpr int kEqualWithin = 1000;  // one part in this number
// Past this number of times that, the mean of the later half must do.
constexpr int kPatience = 4;

bool HasFill(const Plan& plan) {
  return std::any_of(plan.roles().begin(), plan.roles().end(),
                     [](const Role& role) {
                       return FindProgram(role, Program::FILL) != nullptr;
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

SteadyStep RunUntilSteady(const Plan& plan, const RankClasses& classes,
                          const InstructionEffort& effort, RunOptions options) {
  options.kind = StepKind(plan.job());
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
  ProgramsRun run = RunPrograms(plan, classes, effort, options);
  SteadyStep step = {.period_ns = PeriodOf(run.ends, equal),
                     .ranks = std::move(run.ranks)};
  std::map<int, int> indices;  // into step.ranks, by first rank
  for (size_t i = 0; i < step.ranks.size(); ++i) {
    indices[step.ranks[i].rank] = static_cast<int>(i);
  }
  for (int r = 0; r < MeshSize(plan.mesh()); ++r) {
    step.like.push_back(indices.at(classes.FirstLike(r)));
  }
  return step;
}

InstructionEffort Plain(const InstructionTime& time) {
  return [&time](int rank, const Instruction& instruction) {
    return Effort{.other_ns = time(rank, instruction)};
  };
}

// Of the steps of one rank of each class.
int64_t SimulatedInstructions(const Plan& plan, const RankClasses& classes) {
  int64_t instructions = 0;
  for (const int rank : classes.first_ranks()) {
    const Program* const program = StepProgram(RoleOf(plan, rank));
    if (program != nullptr) instructions += program->instructions_size();
  }
  return instructions;
}

}  // namespace

Timeline Simulate(const Plan& plan, Program::Kind kind,
                  const InstructionTime& time) {
  const ProgramsRun run =
      RunPrograms(plan, EachRank(plan), Plain(time),
                  {.kind = kind, .seats = {}, .is_enough = nullptr});
  Timeline timeline;
  timeline.set_predicted(true);
  *timeline.mutable_lanes() = plan.lanes();
  for (const RankTimes& times : run.ranks) {
    *timeline.add_ranks() = TimelineOf(plan, times.rank, times, kind);
  }
  return timeline;
}

SteadyStep SimulateSteps(const Plan& plan, const InstructionTime& time) {
  return RunUntilSteady(plan, EachRank(plan), Plain(time), RunOptions());
}

namespace {

using InstructionCost =
    std::function<Cost(int rank, const Instruction& instruction)>;

// Borrows plan and workers.
InstructionEffort EffortsOf(const Plan& plan,
                            const std::vector<WorkerDescription>& workers,
                            InstructionCost costs) {
  return [&plan, &workers, costs = std::move(costs)](
             int rank, const Instruction& instruction) {
    const Lane::Kind lane = KindOfLane(plan.lanes(), instruction.lane());
    // Beside a GPU, the host's cores are there for what they do alone.
    const bool computes =
        lane == Lane::COMPUTE || (!workers[rank].has_gpu() &&
                                  WorksBesideDevice(plan.lanes(), instruction));
    return EffortOf(costs(rank, instruction), computes);
  };
}

InstructionCost CostsOf(const CostModel& costs) {
  return [&costs](int rank, const Instruction& instruction) {
    return costs.CostOf(rank, instruction);
  };
}

}  // namespace

SteadyStep PredictStep(const Plan& plan,
                       const std::vector<WorkerDescription>& workers,
                       const CostModel& costs, int64_t instructions_max) {
  const auto run = [&](const RankClasses& classes, InstructionCost cost) {
    return RunUntilSteady(plan, classes,
                          EffortsOf(plan, workers, std::move(cost)),
                          {.seats = costs.seats().Of(classes),
                           .adapters = UsesOf(costs.adapters(), classes),
                           .is_enough = nullptr});
  };
  const RankClasses classes(plan, costs.Traits());
  if (SimulatedInstructions(plan, classes) <= instructions_max) {
    return run(classes, CostsOf(costs));
  }
  const CostModel::UnlikeRanks unlike = costs.Unlike();
  SteadyStep step =
      run(RankClasses(plan), [&](int rank, const Instruction& instruction) {
        return costs.BusiestCostOf(rank, instruction, unlike);
      });
  step.one_for_each_role = true;
  return step;
}

SteadyStep PredictStep(const Plan& plan,
                       const std::vector<WorkerDescription>& workers,
                       const LinkGain& gain) {
  return PredictStep(plan, workers, CostModel(plan, workers, gain));
}

int64_t PredictKeepNs(const Plan& plan,
                      const std::vector<WorkerDescription>& workers,
                      const CostModel& costs) {
  if (!KeepsCopies(plan.job(), plan.mesh())) return 0;
  const RankClasses classes(plan, costs.Traits());
  const ProgramsRun run =
      RunPrograms(plan, classes, EffortsOf(plan, workers, CostsOf(costs)),
                  {.kind = Program::KEEP,
                   .seats = costs.seats().Of(classes),
                   .adapters = UsesOf(costs.adapters(), classes),
                   .is_enough = nullptr});
  return run.ends.back();
}

RankTimeline TimelineOf(const Plan& plan, int rank, const RankTimes& times,
                        Program::Kind kind) {
  RankTimeline timeline;
  timeline.set_rank(rank);
  const Program& program = *FindProgram(RoleOf(plan, rank), kind);
  for (int i = 0; i < program.instructions_size(); ++i) {
    Span& span = *timeline.add_spans() = SpanOf(program.instructions(i), i);
    span.set_start_ns(times.instructions[i].start);
    span.set_end_ns(times.instructions[i].end);
  }
  NameRanks(plan, timeline);
  return timeline;
}

Timeline StepTimeline(const Plan& plan, const SteadyStep& step,
                      int64_t spans_max) {
  Timeline timeline;
  timeline.set_predicted(true);
  *timeline.mutable_lanes() = plan.lanes();
  const int ranks = static_cast<int>(step.like.size());
  for (int r = 0; r < ranks; ++r) {
    if (!IsTraced(r, ranks)) continue;
    const RankTimes& times = step.ranks[step.like[r]];
    spans_max -= static_cast<int64_t>(times.instructions.size());
    if (spans_max < 0 && timeline.ranks_size() > 0) break;
    *timeline.add_ranks() = TimelineOf(plan, r, times, StepKind(plan.job()));
  }
  return timeline;
}

}  // namespace troupe
