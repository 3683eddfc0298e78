// Answers CheckJobFiles requests, one after the other, on a thread of its own: a
// disk may take its time, and the worker's messages must not wait for it, nor
// its end. A few requests wait for the one before; more are not answered, and
// the scheduler takes silence for no objection (scheduler/cluster/file_checks.h).
#ifndef TROUPE_WORKER_SERVICE_FILE_CHECKER_H_
#define TROUPE_WORKER_SERVICE_FILE_CHECKER_H_

#include <memory>

#include "proto/worker.pb.h"
#include "worker/service/scheduler_store.h"

namespace troupe {

// One thread at a time.
class FileChecker {
 public:
  FileChecker();
  // As Detach. A thread that a disk holds on to is left to itself.
  ~FileChecker();

  void Check(const CheckJobFiles& request, const SendToScheduler& send);
  // Nothing is sent any more once this returns; what waits is forgotten.
  void Detach();

 private:
  struct State;
  static void Run(const std::shared_ptr<State>& state);

  const std::shared_ptr<State> state_;  // the thread's, too
};

}  // namespace troupe

#endif  // TROUPE_WORKER_SERVICE_FILE_CHECKER_H_
