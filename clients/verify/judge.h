// The verdict of `troupe verify`: whether two runs of one job trained the same
// model, from what they reported of their first steps and from how far apart
// compare.h finds their weights and gradients. A step that one of them did not
// report, and a number that is none, are as far apart as can be: a run that
// shows nothing proves nothing.
//
// Steps of fp16 whose gradients overflowed, as the first ones do until the loss
// scale is found, updated nothing. Of those that both skipped the losses are
// compared, and no gradients, which are no numbers. Where only one skipped a
// step, by a gradient at the very limit, the two train differently from there
// on whatever the plan is: the steps before and the loss of that one are all
// that can be compared, which is too little to call them the same.
#ifndef TROUPE_CLIENTS_VERIFY_JUDGE_H_
#define TROUPE_CLIENTS_VERIFY_JUDGE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "clients/verify/compare.h"
#include "proto/status.pb.h"

namespace troupe {

// How far apart the two may be, as relative distances: in f32 the rounding of
// sums in another order, in bf16 that of activations (docs/performance.md).
struct VerifyTolerance {
  double loss = 1e-5;
  double gradient = 1e-3;  // also of the norm that each step reports
  double weights = 1e-4;
};
VerifyTolerance ToleranceOf(const std::string& precision);

// Of one step; infinite where a side did not report it.
struct StepDistance {
  int64_t step = 0;
  double loss = 0;
  // Of all gradients, before they are clipped; 0 where both skipped the step.
  double grad_norm = 0;
  bool skipped = false;  // by both
};

struct JudgeOptions {
  int64_t steps = 0;  // both took steps 1 to this one
  std::vector<StepRecord> run;
  std::vector<StepRecord> reference;
  std::vector<TensorDistance> tensors;  // after the last of them
  VerifyTolerance tolerance;
};

struct Judgement {
  int64_t diverged = 0;  // the first step whose loss is no number on one rank
                         // either, so that nothing can be said; 0: none is
  int64_t parted = 0;    // the first step that only one of them skipped; 0:
                         // none. `figures` are of what comes before
  bool updated = false;  // some step was skipped by neither
  std::vector<StepDistance> steps;  // every one
  std::string figures;              // the largest distances, and the tolerance
  bool within = false;              // all that are compared are within it
  // The verdict: that all could be compared, and is within.
  bool same = false;
};

Judgement Judge(const JudgeOptions& options);

}  // namespace troupe

#endif  // TROUPE_CLIENTS_VERIFY_JUDGE_H_
