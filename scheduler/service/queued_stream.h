// The sending half of a server stream. gRPC takes one message at a time and
// says when it has gone; this holds the others, in order, up to a bound, and
// ends the stream exactly once. Base is grpc::ServerBidiReactor<...> or
// grpc::ServerWriteReactor<...>; a subclass owns itself until OnDone.
//
// What is queued becomes a message when its turn comes (Outgoing), which may
// take long: a rank's part of a large plan is made then. Enqueue only puts it
// there and waits for no message that is being made, so that it may be called
// under the host's lock; Pump begins to send.
//
// All public methods are thread-safe. A stream whose queue runs full is broken
// off: the other side has stopped reading.
#ifndef TROUPE_SCHEDULER_SERVICE_QUEUED_STREAM_H_
#define TROUPE_SCHEDULER_SERVICE_QUEUED_STREAM_H_

#include <deque>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/optional.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/status.h"

namespace troupe {

template <typename Base, typename Message, typename Queued = Message>
class QueuedStream : public Base {
 public:
  QueuedStream(grpc::CallbackServerContext* context, size_t queue_max)
      : context_(context), queue_max_(queue_max) {}

  void Enqueue(Queued queued) {
    absl::MutexLock lock(&mutex_);
    if (closing_) return;
    if (queue_.size() >= queue_max_) {
      CloseLocked(grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED,
                               "too many messages wait to be read"));
      context_->TryCancel();
      return;
    }
    queue_.push_back(std::move(queued));
  }

  void Pump() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::optional<Queued> next = TakeNext();
    if (!next.has_value()) return;
    outgoing_ = Outgoing(*std::move(next));
    this->StartWrite(&outgoing_);  // by its end this may be gone
  }

  void Push(Queued queued) {
    Enqueue(std::move(queued));
    Pump();
  }

  // Ends the stream when what was pushed has been sent. Only the first counts.
  void Close(grpc::Status status) {
    absl::MutexLock lock(&mutex_);
    CloseLocked(std::move(status));
  }

  // Ends it after the message that is on its way; what waits is dropped. If the
  // other side does not even take that one, keepalive ends the connection.
  void Abort(grpc::Status status) {
    absl::MutexLock lock(&mutex_);
    if (!finished_) queue_.clear();
    CloseLocked(std::move(status));
  }

  void OnWriteDone(bool ok) final {
    {
      absl::MutexLock lock(&mutex_);
      writing_ = false;
      outgoing_ = Message();  // it may be large
      if (!ok) {
        queue_.clear();
        CloseLocked(grpc::Status(grpc::StatusCode::CANCELLED, "not read"));
      }
      if (closing_) FinishIfDrained();
    }
    Pump();
  }

  void OnCancel() override {
    Abort(grpc::Status(grpc::StatusCode::CANCELLED, "cancelled"));
  }

 protected:
  bool closing() const {
    absl::MutexLock lock(&mutex_);
    return closing_;
  }

  // What is sent for what was queued. Called once for each, in order, and
  // without a lock.
  virtual Message Outgoing(Queued queued) const = 0;

 private:
  // Nothing: a message is on its way or being made, or none waits. The stream
  // is not finished before what is taken has been written.
  absl::optional<Queued> TakeNext() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    if (writing_ || queue_.empty()) return absl::nullopt;
    writing_ = true;
    Queued next = std::move(queue_.front());
    queue_.pop_front();
    return next;
  }
  void CloseLocked(grpc::Status status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!closing_) {
      closing_ = true;
      status_ = std::move(status);
    }
    FinishIfDrained();
  }
  void FinishIfDrained() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (finished_ || writing_ || !queue_.empty()) return;
    finished_ = true;
    this->Finish(status_);
  }

  grpc::CallbackServerContext* const context_;
  const size_t queue_max_;
  mutable absl::Mutex mutex_;
  std::deque<Queued> queue_ ABSL_GUARDED_BY(mutex_);
  Message outgoing_;  // while writing_, of the thread that took it and of gRPC
  grpc::Status status_ ABSL_GUARDED_BY(mutex_);
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_SERVICE_QUEUED_STREAM_H_
