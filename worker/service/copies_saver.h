// One SaveCopies request, on a thread of its own, for a disk may take its time:
// answered by a CopiesSaved.
#ifndef TROUPE_WORKER_SERVICE_COPIES_SAVER_H_
#define TROUPE_WORKER_SERVICE_COPIES_SAVER_H_

#include <atomic>
#include <string>
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
  // Cuts it short, waits until it has answered, and gives up what was written,
  // by all: either that is gone, or a worker that commits it meanwhile has it
  // whole, under another name.
  ~CopiesSaver();

  // What was written is committed by the next request: it stays. REQUIRES that
  // it has answered.
  void Keep() { gives_up_ = false; }
  // The session is over in which it was asked. Another worker may be committing
  // what this one has written and said: that stays for it. Where nobody does,
  // the next process that looks after the directory removes it.
  void KeepWhatIsSaid() {
    if (said_) gives_up_ = false;
  }
  const std::string& token() const { return request_.token(); }

 private:
  void Run();
  absl::Status Save(CopiesSaved& answer);
  void GiveUp() const;

  const SaveCopies request_;
  const KeptMemory& kept_;
  const RankResources resources_;
  const SendToScheduler send_;
  DiskLog log_;
  bool gives_up_ = true;
  std::atomic<bool> said_{false};  // that its copies are written
  std::thread thread_;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_SERVICE_COPIES_SAVER_H_
