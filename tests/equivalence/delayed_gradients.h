// Training with delayed gradients, as plainly as it can be written: one
// process, one loop, and the weights after every step kept. What asynchronous
// pipelines, and replicas that push when they are ready, must agree with.
// Shares with them the units, the optimizer's arithmetic and the data, and
// nothing of plans, programs or ranks.
//
//   w(t+1) = optimizer(w(t), mean over micro-batches m of gradient of the loss
//                            on m, at w(version of each stage for t and m))
#ifndef TROUPE_TESTS_EQUIVALENCE_DELAYED_GRADIENTS_H_
#define TROUPE_TESTS_EQUIVALENCE_DELAYED_GRADIENTS_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "proto/job.pb.h"

namespace troupe {

struct Occasion {
  int stage = 0;
  int64_t step = 0;     // the first is 0
  int micro_batch = 0;  // of its replica in this step
};

struct DelayedTraining {
  JobSpec job;  // resolved, f32
  // Of each stage, first stage first.
  std::vector<int> stage_units;
  // After how many steps the weights were those with which the stage takes the
  // micro-batch forward and backward; negative: before the first.
  std::function<int64_t(const Occasion&)> version;
  // Steps, counted as in Occasion, before which training was interrupted:
  // nothing older than the weights of then is used from there on.
  std::vector<int64_t> restarts;
  // Of which step the samples are that update the weights in this one, both
  // counted as in Occasion; empty: its own.
  std::function<int64_t(int64_t step)> batch = {};
};

struct DelayedStep {
  double loss = 0;
  double gradient_norm = 0;
};

// Of every step of the job.
std::vector<DelayedStep> TrainWithDelays(const DelayedTraining& training);

}  // namespace troupe

#endif  // TROUPE_TESTS_EQUIVALENCE_DELAYED_GRADIENTS_H_
