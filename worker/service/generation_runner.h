// One GenerateText request from start to end, on a thread of its own: pieces of
// the text go out as GeneratedText messages, the last of which says `done`.
#ifndef TROUPE_WORKER_SERVICE_GENERATION_RUNNER_H_
#define TROUPE_WORKER_SERVICE_GENERATION_RUNNER_H_

#include <atomic>
#include <thread>

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
  // Ends the generation after the token in progress.
  ~GenerationRunner();

  bool ended() const { return ended_.HasBeenNotified(); }

 private:
  void Run();
  absl::Status Generate();
  absl::Status SendPiece(const TextPiece& piece);

  const GenerateText request_;
  const RankResources& resources_;
  const SendToScheduler send_;
  std::atomic<bool> stop_{false};
  absl::Notification ended_;
  std::thread thread_;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_SERVICE_GENERATION_RUNNER_H_
