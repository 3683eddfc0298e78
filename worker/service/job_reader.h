// One ReadCheckpointJob request, on a thread of its own, for a disk may take
// its time: answered by a CheckpointJob.
#ifndef TROUPE_WORKER_SERVICE_JOB_READER_H_
#define TROUPE_WORKER_SERVICE_JOB_READER_H_

#include <thread>

#include "proto/worker.pb.h"
#include "worker/service/scheduler_store.h"

namespace troupe {

class JobReader {
 public:
  JobReader(const ReadCheckpointJob& request, SendToScheduler send);
  // Waits until it has answered.
  ~JobReader();

 private:
  void Run() const;

  const ReadCheckpointJob request_;
  const SendToScheduler send_;
  std::thread thread_;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_SERVICE_JOB_READER_H_
