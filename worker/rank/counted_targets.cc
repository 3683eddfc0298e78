#include "worker/rank/counted_targets.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "proto/base/log.h"
#include "proto/base/status.h"
#include "proto/plan/islands.h"

namespace troupe {
namespace {

std::string NothingCounts(int64_t first, int64_t samples) {
  return absl::StrCat(
      "data: of samples ", first, " to ", first + samples - 1,
      ", which are one step, no token counts as a target, so the step has a "
      "loss of 0 and no gradient; raise training.global_batch_size, or prepare "
      "the data with --sequence-length, so that each sequence has a whole "
      "record");
}

}  // namespace

absl::StatusOr<int64_t> CountedTargets::Of(const JobSpec& job,
                                           const SampleReader* data,
                                           int64_t first) {
  const int64_t samples = SamplesOfIsland(job);
  if (data == nullptr || data->counts_all_targets()) {
    return samples * job.training().sequence_length();
  }
  const absl::MutexLock lock(&mutex_);
  for (const Counted& counted : counted_) {
    if (counted.first == first) return counted.count;
  }
  ASSIGN_OR_RETURN(const int64_t count, data->CountTargets(first, samples));
  if (count == 0) LogWarning(NothingCounts(first, samples));
  Counted& counted = counted_[next_];
  next_ = (next_ + 1) % counted_.size();
  counted = {.first = first, .count = std::max<int64_t>(count, 1)};
  return counted.count;
}

}  // namespace troupe
