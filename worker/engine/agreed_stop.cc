#include "worker/engine/agreed_stop.h"

namespace troupe {

void AgreedStop::Heed(int64_t step, const Scalars& scalars) {
  if (scalars[kStopFlag] == 0 && scalars[kSaveFlag] > 0) {
    saves_after_ = step + lag_;
  }
  if (scalars[kStopFlag] == 0 || step_ != kNever) return;
  step_ = step + lag_;
  save_ = scalars[kSaveFlag] > 0;
}

}  // namespace troupe
