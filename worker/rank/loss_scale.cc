#include "worker/rank/loss_scale.h"

#include <algorithm>
#include <cmath>

#include "proto/plan/precision.h"

namespace troupe {
namespace {

constexpr double kFirst = 65536;
constexpr double kFactor = 2;
constexpr int64_t kGoodSteps = 2000;
constexpr int64_t kSkippedInARowMax = 20;
// What gradients are divided by is an f32.
constexpr double kMost = 0x1p100;

}  // namespace

LossScale::LossScale(const TrainingSpec& training,
                     const ManifestLossScale& state)
    : scales_(ScalesLoss(training)),
      fixed_(training.has_loss_scale()),
      state_(state) {
  if (!scales_) return;
  if (fixed_) {
    state_.scale = training.loss_scale();
  } else if (state_.scale == 0) {
    state_.scale = kFirst;
  }
}

bool LossScale::Overflowed(double squared_norm) {
  return !std::isfinite(squared_norm);
}

void LossScale::Update(double squared_norm) {
  if (!scales_) return;
  const bool overflowed = Overflowed(squared_norm);
  state_.skipped_steps += overflowed;
  skipped_in_a_row_ = overflowed ? skipped_in_a_row_ + 1 : 0;
  state_.good_steps = overflowed ? 0 : state_.good_steps + 1;
  if (fixed_) return;
  if (overflowed) {
    state_.scale /= kFactor;
  } else if (state_.good_steps >= kGoodSteps) {  // more, of a fixed one
    state_.scale = std::min(kMost, state_.scale * kFactor);
    state_.good_steps = 0;
  }
}

bool LossScale::MayHelp() const {
  if (!scales_) return false;
  return fixed_ ? skipped_in_a_row_ < kSkippedInARowMax
                : state_.scale * kFactor > 1;
}

}  // namespace troupe
