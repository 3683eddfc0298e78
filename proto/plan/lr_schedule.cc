#include "proto/plan/lr_schedule.h"

#include <algorithm>
#include <cmath>

#include "proto/base/check.h"

namespace troupe {

double LearningRate(const JobSpec& job, int64_t step) {
  const LrSchedulerSpec& spec = job.lr_scheduler();
  const double lr = job.optimizer().lr();
  const double min_lr = spec.min_lr();
  const double steps = static_cast<double>(job.training().steps());
  const double warmup = static_cast<double>(spec.warmup_steps());
  const double s = std::clamp(static_cast<double>(step), 1.0, steps);

  if (s <= warmup) return lr * s / warmup;
  if (spec.name() == "constant") return lr;
  if (spec.name() == "wsd") {
    const double decay = static_cast<double>(spec.decay_steps());
    const double into = s - (steps - decay);
    if (into <= 0) return lr;
    return into >= decay ? min_lr : lr + (min_lr - lr) * into / decay;
  }
  // steps > warmup here, since s <= steps is past the warm-up.
  const double progress = (s - warmup) / (steps - warmup);
  if (progress >= 1) return min_lr;
  if (spec.name() == "linear") return lr + (min_lr - lr) * progress;
  CHECK_EQ(spec.name(), "cosine");
  return min_lr + (lr - min_lr) * (1 + std::cos(M_PI * progress)) / 2;
}

}  // namespace troupe
