// One SaveCopies request, on a thread of its own, for a disk may take its time:
// answered by a CopiesSaved.
#ifndef TROUPE_WORKER_SERVICE_COPIES_SAVER_H_
#define TROUPE_WORKER_SERVICE_COPIES_SAVER_H_

#include <thread>

#include "absl/status/status.h"
#include "proto/worker.pb.h"
#include "worker/engine/train_loop.h"
#include "worker/rank/disk_log.h"
#include "worker/rank/state_copies.h"
#include "worker/service/scheduler_store.h"

namespace troupe {

class CopiesSaver {
 public:
  // Borrows `kept`, whose rank has ended, and all of the resources.
  CopiesSaver(const SaveCopies& request, const KeptMemory& kept,
              const RankResources& resources, SendToScheduler send);
  // Cuts it short, and waits until it has answered.
  ~CopiesSaver();

 private:
  void Run();
  absl::Status Save(CopiesSaved& answer);

  const SaveCopies request_;
  const KeptMemory& kept_;
  const RankResources resources_;
  const SendToScheduler send_;
  DiskLog log_;
  std::thread thread_;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_SERVICE_COPIES_SAVER_H_
