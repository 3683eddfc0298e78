// One GenerateText request from start to end, on a thread of its own: pieces of
// the text go out as GeneratedText messages, the last of which says `done`,
// also where the text was stopped. With others it joins them first, so that one
// that cannot be reached is known before weights are loaded; of these ranks all
// say that they load, and then the first alone speaks.
#ifndef TROUPE_WORKER_SERVICE_GENERATION_RUNNER_H_
#define TROUPE_WORKER_SERVICE_GENERATION_RUNNER_H_

#include <memory>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "proto/worker.pb.h"
#include "worker/collective/join_abort.h"
#include "worker/engine/text_generation.h"
#include "worker/engine/text_ranks.h"
#include "worker/engine/train_loop.h"
#include "worker/service/scheduler_store.h"

namespace troupe {

struct GenerationOptions {
  const RankResources& resources;
  SendToScheduler send;
  std::string address;  // where peers reach this worker
};

class GenerationRunner {
 public:
  GenerationRunner(const GenerateText& request,
                   const GenerationOptions& options);
  ~GenerationRunner();

  // Ends it, if it is this request, after the token, unit of weights or part of
  // a long prompt in progress; a wait for others at once. Does not wait.
  // Thread-safe.
  void Stop(const StopText& stop);

  // Of the text's rendezvous; those of others are dropped. Thread-safe.
  void OnValue(const StoreValue& value);

  bool ended() const { return ended_.HasBeenNotified(); }

 private:
  void Run();
  absl::Status Generate();
  absl::Status Join();
  absl::Status SendPiece(const TextPiece& piece);
  void SendLast(const absl::Status& status);
  absl::Status stopped() const;

  const GenerateText request_;
  const GenerationOptions options_;
  SchedulerStore store_;
  JoinAbort join_abort_;
  bool loaded_ = false;  // the thread's own
  mutable absl::Mutex mutex_;
  absl::Status stopped_ ABSL_GUARDED_BY(mutex_);              // OK: go on
  std::unique_ptr<TextRanks> ranks_ ABSL_GUARDED_BY(mutex_);  // null: alone
  absl::Notification ended_;
  std::thread thread_;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_SERVICE_GENERATION_RUNNER_H_
