// The streams of Generate: each waits for the pieces of one text.
//
// Locks: the host's comes first, then the table's, then a stream's.
#ifndef TROUPE_SCHEDULER_SERVICE_TEXT_STREAMS_H_
#define TROUPE_SCHEDULER_SERVICE_TEXT_STREAMS_H_

#include <map>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "grpcpp/grpcpp.h"
#include "proto/scheduler.pb.h"
#include "scheduler/cluster/host.h"

namespace troupe {

class QueuedText;

class TextStreams final : public ActionSink {
 public:
  // Borrows the host.
  explicit TextStreams(ClusterHost& host) : host_(host) {}

  // A new stream; a refused request is a stream that ends with the refusal.
  grpc::ServerWriteReactor<GenerateResponse>* Generate(
      grpc::CallbackServerContext* context, const GenerateRequest& request);

  // GenerateReply; the other actions are not its business.
  void Carry(const Actions& actions) override;

  // Pieces that may wait for one client.
  static constexpr size_t kQueueMax = 1 << 14;

 private:
  friend class QueuedText;
  void Done(int64_t request, QueuedText* stream);

  ClusterHost& host_;
  absl::Mutex mutex_;
  std::map<int64_t, QueuedText*> streams_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_SERVICE_TEXT_STREAMS_H_
