#include "worker/rank/counted_targets.h"

#include <algorithm>

#include "proto/base/status.h"

namespace troupe {

absl::StatusOr<int64_t> CountedTargets::Of(const JobSpec& job,
                                           const SampleReader* data,
                                           int64_t first) {
  const int64_t samples = job.training().global_batch_size();
  // Without data the rank has no loss to divide.
  if (!job.data().isolate_documents() || data == nullptr) {
    return samples * job.training().sequence_length();
  }
  const absl::MutexLock lock(&mutex_);
  for (const Counted& counted : counted_) {
    if (counted.first == first) return counted.count;
  }
  ASSIGN_OR_RETURN(const int64_t count, data->CountTargets(first, samples));
  Counted& counted = counted_[next_];
  next_ = (next_ + 1) % counted_.size();
  counted = {.first = first, .count = std::max<int64_t>(count, 1)};
  return counted.count;
}

}  // namespace troupe
