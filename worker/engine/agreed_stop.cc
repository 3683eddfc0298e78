#include "worker/engine/agreed_stop.h"

namespace troupe {

void AgreedStop::Heed(int64_t step, const StopFlags& flags) {
  if (flags.stop == 0 && flags.save > 0) {
    saves_after_ = step + lag_;
  }
  if (flags.stop == 0 || step_ != kNever) return;
  step_ = step + lag_;
  save_ = flags.save > 0;
}

}  // namespace troupe
