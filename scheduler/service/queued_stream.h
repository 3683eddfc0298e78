// The sending half of a server stream. gRPC takes one message at a time and
// says when it has gone; this holds the others, in order, up to a bound, and
// ends the stream exactly once. Base is grpc::ServerBidiReactor<...> or
// grpc::ServerWriteReactor<...>; a subclass owns itself until OnDone.
//
// Push and Close are thread-safe. A stream whose queue runs full is broken off:
// the other side has stopped reading.
#ifndef TROUPE_SCHEDULER_SERVICE_QUEUED_STREAM_H_
#define TROUPE_SCHEDULER_SERVICE_QUEUED_STREAM_H_

#include <deque>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/status.h"

namespace troupe {

template <typename Base, typename Message>
class QueuedStream : public Base {
 public:
  QueuedStream(grpc::CallbackServerContext* context, size_t queue_max)
      : context_(context), queue_max_(queue_max) {}

  void Push(Message message) {
    absl::MutexLock lock(&mutex_);
    if (closing_) return;
    if (queue_.size() >= queue_max_) {
      CloseLocked(grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED,
                               "too many messages wait to be read"));
      context_->TryCancel();
      return;
    }
    queue_.push_back(std::move(message));
    if (!writing_) WriteNext();
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
    absl::MutexLock lock(&mutex_);
    writing_ = false;
    if (!ok) {
      queue_.clear();
      CloseLocked(grpc::Status(grpc::StatusCode::CANCELLED, "not read"));
    } else if (!queue_.empty()) {
      WriteNext();
    }
    if (closing_) FinishIfDrained();
  }

  void OnCancel() override {
    Abort(grpc::Status(grpc::StatusCode::CANCELLED, "cancelled"));
  }

 protected:
  bool closing() const {
    absl::MutexLock lock(&mutex_);
    return closing_;
  }

 private:
  void WriteNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    outgoing_ = std::move(queue_.front());
    queue_.pop_front();
    writing_ = true;
    this->StartWrite(&outgoing_);
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
  std::deque<Message> queue_ ABSL_GUARDED_BY(mutex_);
  Message outgoing_;  // gRPC reads it while writing_
  grpc::Status status_ ABSL_GUARDED_BY(mutex_);
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_SERVICE_QUEUED_STREAM_H_
