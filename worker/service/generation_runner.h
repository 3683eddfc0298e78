// One GenerateText request from start to end, on a thread of its own: pieces of
// the text go out as GeneratedText messages, the last of which says `done`,
// also where the text was stopped.
#ifndef TROUPE_WORKER_SERVICE_GENERATION_RUNNER_H_
#define TROUPE_WORKER_SERVICE_GENERATION_RUNNER_H_

#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "proto/worker.pb.h"
#include "worker/engine/text_generation.h"
#include "worker/engine/train_loop.h"
#include "worker/service/scheduler_store.h"

namespace troupe {

class GenerationRunner {
 public:
  // Borrows `resources`.
  GenerationRunner(const GenerateText& request, const RankResources& resources,
                   SendToScheduler send);
  ~GenerationRunner();

  // Ends it, if it is this request, after the token, unit of weights or part of
  // a long prompt in progress. Does not wait. Thread-safe.
  void Stop(const StopText& stop);

  bool ended() const { return ended_.HasBeenNotified(); }

 private:
  void Run();
  absl::Status Generate();
  absl::Status SendPiece(const TextPiece& piece);

  const GenerateText request_;
  const RankResources& resources_;
  const SendToScheduler send_;
  absl::Mutex mutex_;
  absl::Status stopped_ ABSL_GUARDED_BY(mutex_);  // OK: go on
  absl::Notification ended_;
  std::thread thread_;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_SERVICE_GENERATION_RUNNER_H_
