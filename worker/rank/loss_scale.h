// What the loss of an fp16 job is multiplied by, so that its gradients, of
// which many are below what fp16 can hold, are not zeros (Micikevicius et al.,
// 1710.03740, section 3.2). It is as large as no gradient overflows, found
// while training as PyTorch's GradScaler does it: 2^16 at first; a step in
// which any gradient of any rank overflowed updates nothing and halves it;
// after 2000 steps in a row without it is doubled. training.loss_scale fixes
// it. Where neither ends the overflows, the job has to
// (worker/engine/step_record.h).
//
//   LossScale scale(training);
//   ... the step's gradients are those of scale.factor() times the loss ...
//   scale.Update(squared_norm);  // of all of them, the same number on all
//   ranks
//
// All ranks update it by the same numbers, so that they never differ.
#ifndef TROUPE_WORKER_RANK_LOSS_SCALE_H_
#define TROUPE_WORKER_RANK_LOSS_SCALE_H_

#include <cstdint>

#include "proto/job.pb.h"
#include "storage/checkpoint/manifest_entries.h"

namespace troupe {

class LossScale {
 public:
  // As a checkpoint left it, of a job of any precision. REQUIRES a resolved
  // spec.
  explicit LossScale(const TrainingSpec& training,
                     const ManifestLossScale& state = {});

  // Whether a gradient overflowed, by the sum of squares of all.
  static bool Overflowed(double squared_norm);

  // 1 where the job's loss is not scaled.
  double factor() const { return scales_ ? state_.scale : 1; }

  // By the squared norm of what a step's gradients were. Nothing where the
  // job's loss is not scaled.
  void Update(double squared_norm);

  // Whether steps may come whose gradients do not overflow, though the last
  // one's did: a scale that is found is halved down to 1, a fixed one is given
  // 20 steps in a row.
  bool MayHelp() const;

  // For the checkpoint; a job whose loss is not scaled keeps what it found.
  const ManifestLossScale& state() const { return state_; }

 private:
  bool scales_ = false;
  bool fixed_ = false;
  int64_t skipped_in_a_row_ = 0;
  ManifestLossScale state_;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_RANK_LOSS_SCALE_H_
