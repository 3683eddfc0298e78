// How long does an order of computation take, and how much does it keep? A
// pipeline of stages that all take the same time, transfers that take none: the
// setting of the papers' closed forms. A rank runs its steps in order; a
// forward waits for that of the stage before, a backward-input for that of the
// stage after (the last stage: for its own forward). One backward pass takes
// the time of both halves and hands its gradient on at its end.
#ifndef TROUPE_TESTS_SCHEDULER_PIPELINES_EVALUATE_H_
#define TROUPE_TESTS_SCHEDULER_PIPELINES_EVALUATE_H_

#include <cstdint>
#include <vector>

#include "scheduler/pipelines/compute_order.h"

namespace troupe {

// Of one stage and micro-batch.
struct PassTimes {
  int forward = 1;
  int backward_input = 1;
  int backward_weight = 1;
  int backward() const { return backward_input + backward_weight; }
  int all() const { return forward + backward(); }
};

struct EvaluateOptions {
  PipelineShape shape;
  PassTimes times;
  // Optimizer steps one after the other. No rank waits for another between
  // them; orders that run ahead are filled first.
  int programs = 1;
};

// A step as it ran; one backward pass is one.
struct TimedPass {
  ComputeStep step;
  bool with_weight = false;  // a backward-input: with its backward-weight
  int entered = 0;  // micro-batches of the job that entered before this one
  int program = 0;  // -1: while the pipeline was filled
  int64_t start = 0;
  int64_t end = 0;
};

struct Evaluation {
  bool complete = false;     // false: ranks wait for each other for ever
  int64_t makespan = 0;      // until the last rank is done
  int64_t longest_span = 0;  // of a rank from its first start to its last end
  // Stages and micro-batches whose forward has run and whose backward-weight
  // has not, at most, for each rank.
  std::vector<int> peaks;
  std::vector<std::vector<int64_t>> program_ends;  // [rank][program]
  std::vector<std::vector<TimedPass>> passes;      // [rank], in order
};

Evaluation Evaluate(const ComputeOrder& order, const EvaluateOptions& options);

}  // namespace troupe

#endif  // TROUPE_TESTS_SCHEDULER_PIPELINES_EVALUATE_H_
