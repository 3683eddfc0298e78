// What a worker lends to jobs, small, and assignments of the small job to its
// rank 0 of 1: for tests of what runs them.
#ifndef TROUPE_TESTS_WORKER_SERVICE_SMALL_WORKER_H_
#define TROUPE_TESTS_WORKER_SERVICE_SMALL_WORKER_H_

#include <memory>

#include "proto/job.pb.h"
#include "proto/worker.pb.h"
#include "storage/tier/allocator.h"
#include "worker/engine/train_loop.h"

namespace troupe {

class SmallWorker {
 public:
  SmallWorker();
  explicit SmallWorker(std::unique_ptr<Device> device);

  const RankResources& resources() const { return resources_; }
  const TierArenas& arenas() const { return arenas_; }
  WorkerDescription Description() const;

 private:
  const RealClock clock_;
  const std::unique_ptr<Device> device_;
  const std::unique_ptr<TierAllocator> allocator_;
  const TierArenas arenas_;
  const std::unique_ptr<IoEngine> io_;
  const RankResources resources_;
};

// Job 5, attempt 2.
Assignment Assign(const JobSpec& job, const SmallWorker& worker);

}  // namespace troupe

#endif  // TROUPE_TESTS_WORKER_SERVICE_SMALL_WORKER_H_
