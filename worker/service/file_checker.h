// Answers CheckJobFiles requests, one at a time, on a thread of its own: a disk
// may take its time, and the worker's messages must not wait for it. A request
// that comes while a disk still has the one before is not answered; whoever
// asked waits only so long, and asks other workers too.
#ifndef TROUPE_WORKER_SERVICE_FILE_CHECKER_H_
#define TROUPE_WORKER_SERVICE_FILE_CHECKER_H_

#include <atomic>
#include <thread>

#include "proto/worker.pb.h"
#include "worker/service/scheduler_store.h"

namespace troupe {

// One thread at a time.
class FileChecker {
 public:
  FileChecker() = default;
  // Waits for the disk.
  ~FileChecker();

  void Check(const CheckJobFiles& request, const SendToScheduler& send);

 private:
  std::atomic<bool> busy_{false};
  std::thread thread_;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_SERVICE_FILE_CHECKER_H_
