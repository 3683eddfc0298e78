// By what the gradient of a step's loss is divided: the number of its targets
// that count, over all ranks of an island and micro-batches. A step's samples
// are known by their numbers (storage/dataset/sample_reader.h), so each rank
// finds the number by itself, before the first backward pass, and all find the
// same.
//
// Thread-safe: lanes ask for the steps that they work on, which are few.
#ifndef TROUPE_WORKER_RANK_COUNTED_TARGETS_H_
#define TROUPE_WORKER_RANK_COUNTED_TARGETS_H_

#include <array>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "proto/job.pb.h"
#include "storage/dataset/sample_reader.h"

namespace troupe {

class CountedTargets {
 public:
  // Of the samples [first, first + the job's global batch), or, where there are
  // islands, as many as one of them has of it. All where `data` is
  // null, as a rank without it has no loss to divide, or where all targets of
  // it count; then nothing is read. 1 where none counts, with a warning in the
  // log: such a step has a loss of 0, and gradients of zeros to divide.
  absl::StatusOr<int64_t> Of(const JobSpec& job, const SampleReader* data,
                             int64_t first);

 private:
  struct Counted {
    int64_t first = -1;
    int64_t count = 0;
  };

  absl::Mutex mutex_;
  std::array<Counted, 8> counted_ ABSL_GUARDED_BY(mutex_);
  size_t next_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_RANK_COUNTED_TARGETS_H_
