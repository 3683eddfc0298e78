#include "tests/scheduler/pipelines/evaluate.h"

#include <algorithm>
#include <optional>

namespace troupe {
namespace {

std::vector<TimedPass> PassesOf(const std::vector<ComputeStep>& steps,
                                const EvaluateOptions& options) {
  std::vector<TimedPass> passes;
  for (int program = -MaxAhead(steps); program < options.programs; ++program) {
    for (size_t i = 0; i < steps.size(); ++i) {
      const int step = program + steps[i].ahead;
      if (program < 0 && (steps[i].ahead == 0 || step < 0)) continue;
      TimedPass& pass = passes.emplace_back();
      pass.step = steps[i];
      pass.entered = step * options.shape.micro_batches + steps[i].micro_batch;
      pass.program = std::max(program, -1);
      if (i + 1 < steps.size() && OneBackward(steps[i], steps[i + 1])) {
        pass.with_weight = true;
        ++i;
      }
    }
  }
  return passes;
}

class Clockwork {
 public:
  Clockwork(const ComputeOrder& order, const EvaluateOptions& options)
      : options_(options), ranks_(order.size()) {
    int entered = 0;
    for (size_t r = 0; r < order.size(); ++r) {
      ranks_[r].passes = PassesOf(order[r], options);
      for (const TimedPass& p : ranks_[r].passes) {
        entered = std::max(entered, p.entered + 1);
      }
    }
    for (auto& ends : ends_) {
      ends.assign(options.shape.stages(),
                  std::vector<std::optional<int64_t>>(entered));
    }
  }

  Evaluation Run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (Rank& rank : ranks_) {
        while (rank.next < rank.passes.size() && RunNext(rank)) moved = true;
      }
    }
    Evaluation result;
    result.complete = true;
    for (const Rank& rank : ranks_) {
      result.complete &= rank.next == rank.passes.size();
      result.makespan = std::max(result.makespan, rank.now);
      result.longest_span =
          std::max(result.longest_span, rank.now - rank.passes.front().start);
      result.peaks.push_back(rank.peak);
      result.program_ends.push_back(rank.program_ends);
      result.passes.push_back(rank.passes);
    }
    return result;
  }

 private:
  struct Rank {
    std::vector<TimedPass> passes;
    size_t next = 0;
    int64_t now = 0;
    int kept = 0;
    int peak = 0;
    std::vector<int64_t> program_ends;
  };
  using Ends = std::vector<std::vector<std::optional<int64_t>>>;

  // When what the pass reads is there: nothing while it is not.
  std::optional<int64_t> Ready(const TimedPass& pass) const {
    const int stage = pass.step.stage;
    switch (pass.step.kind) {
      case ComputeStep::kForward:
        return stage == 0 ? 0 : forwards()[stage - 1][pass.entered];
      case ComputeStep::kBackwardInput:
        if (!forwards()[stage][pass.entered]) return std::nullopt;
        return stage == options_.shape.stages() - 1
                   ? forwards()[stage][pass.entered]
                   : inputs()[stage + 1][pass.entered];
      case ComputeStep::kBackwardWeight:
        return inputs()[stage][pass.entered];
    }
    return std::nullopt;
  }

  bool RunNext(Rank& rank) {
    TimedPass& pass = rank.passes[rank.next];
    const std::optional<int64_t> ready = Ready(pass);
    if (!ready) return false;
    pass.start = std::max(rank.now, *ready);
    const bool forward = pass.step.kind == ComputeStep::kForward;
    const bool input = pass.step.kind == ComputeStep::kBackwardInput;
    const bool weight = !forward && (!input || pass.with_weight);
    rank.now = pass.end = pass.start + (forward ? options_.times.forward : 0) +
                          (input ? options_.times.backward_input : 0) +
                          (weight ? options_.times.backward_weight : 0);
    if (forward) ends_[0][pass.step.stage][pass.entered] = rank.now;
    if (input) ends_[1][pass.step.stage][pass.entered] = rank.now;
    rank.kept += forward ? 1 : weight ? -1 : 0;
    rank.peak = std::max(rank.peak, rank.kept);
    if (pass.program >= 0) {
      rank.program_ends.resize(pass.program + 1);
      rank.program_ends[pass.program] = rank.now;
    }
    ++rank.next;
    return true;
  }

  const Ends& forwards() const { return ends_[0]; }
  const Ends& inputs() const { return ends_[1]; }

  const EvaluateOptions options_;
  std::vector<Rank> ranks_;
  Ends ends_[2];  // of forwards and backward-inputs: [stage][entered]
};

}  // namespace

Evaluation Evaluate(const ComputeOrder& order, const EvaluateOptions& options) {
  return Clockwork(order, options).Run();
}

}  // namespace troupe
