#include "scheduler/simulate/simulate.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <queue>
#include <tuple>
#include <utility>

#include "proto/base/check.h"
#include "proto/plan/meeting.h"
#include "proto/plan/ready_queue.h"
#include "scheduler/simulate/cost_model.h"

namespace troupe {
namespace {

class Simulation {
 public:
  Simulation(const Plan& plan, Program::Kind kind, const InstructionTime& time)
      : time_(time), meeting_(plan, kind) {
    for (const RankPlan& rank : plan.ranks()) {
      for (const Program& program : rank.programs()) {
        if (program.kind() != kind) continue;
        ranks_.emplace(rank.rank(), RankState(program));
      }
    }
  }

  Timeline Run() {
    for (auto& [rank, state] : ranks_) StartAll(rank, state.queue->Start());
    while (!endings_.empty()) {
      const Ending ending = endings_.top();
      endings_.pop();
      now_ = ending.time;
      RankState& state = ranks_.at(ending.at.rank);
      state.spans[ending.at.instruction].set_end_ns(now_);
      StartAll(ending.at.rank, state.queue->Finish(ending.at.instruction));
    }
    Timeline timeline;
    timeline.set_predicted(true);
    for (auto& [rank, state] : ranks_) {
      CHECK(state.queue->done()) << "rank " << rank << " never finishes";
      RankTimeline& out = *timeline.add_ranks();
      out.set_rank(rank);
      for (Span& span : state.spans) *out.add_spans() = std::move(span);
    }
    return timeline;
  }

 private:
  struct RankState {
    explicit RankState(const Program& p)
        : program(&p),
          queue(std::make_unique<ReadyQueue>(p)),
          spans(p.instructions_size()) {}
    const Program* program;
    std::unique_ptr<ReadyQueue> queue;
    std::vector<Span> spans;  // by instruction
  };

  struct Ending {
    int64_t time = 0;
    RankInstruction at;
    bool operator>(const Ending& other) const {
      return std::tie(time, at.rank, at.instruction) >
             std::tie(other.time, other.at.rank, other.at.instruction);
    }
  };

  const Instruction& At(const RankInstruction& here) const {
    return ranks_.at(here.rank).program->instructions(here.instruction);
  }

  void StartAll(int rank, const std::vector<int>& ready) {
    for (const int i : ready) Start({.rank = rank, .instruction = i});
  }

  // From here on the instruction holds its lane; it runs when all have come.
  void Start(const RankInstruction& here) {
    const Instruction& instruction = At(here);
    Span& span = ranks_.at(here.rank).spans[here.instruction];
    span.set_instruction(here.instruction);
    span.set_kind(instruction.kind());
    span.set_lane(instruction.lane());
    if (instruction.has_unit()) span.set_unit(instruction.unit());
    span.set_unit_count(instruction.unit_count());
    if (instruction.has_micro_batch()) {
      span.set_micro_batch(instruction.micro_batch());
    }
    span.set_start_ns(now_);

    const std::vector<RankInstruction> together = meeting_.Arrive(here);
    int64_t duration = 0;
    for (const RankInstruction& member : together) {
      duration = std::max(duration, time_(member.rank, At(member)));
    }
    for (const RankInstruction& member : together) {
      endings_.push({.time = now_ + duration, .at = member});
    }
  }

  const InstructionTime& time_;
  Meeting meeting_;
  std::map<int, RankState> ranks_;
  std::priority_queue<Ending, std::vector<Ending>, std::greater<Ending>>
      endings_;
  int64_t now_ = 0;
};

}  // namespace

Timeline Simulate(const Plan& plan, Program::Kind kind,
                  const InstructionTime& time) {
  return Simulation(plan, kind, time).Run();
}

Timeline PredictTimeline(const Plan& plan,
                         const std::vector<WorkerDescription>& workers) {
  const CostModel costs(plan, workers);
  return Simulate(
      plan, Program::TRAIN, [&](int rank, const Instruction& instruction) {
        const double seconds = costs.CostOf(rank, instruction).total();
        return static_cast<int64_t>(std::llround(seconds * 1e9));
      });
}

}  // namespace troupe
