// The queue between an actor and those that talk to it. It has a bound, so that
// a sender that is faster than the receiver waits instead of filling memory.
//
//   Mailbox<Job> mailbox(/*capacity=*/16);
//   RETURN_IF_ERROR(mailbox.Push(std::move(job), absl::Seconds(1)));   //
//   senders while (std::optional<Job> job = mailbox.Pop())
//   Work(*std::move(job));
//
// Messages are moved in and out, in the order in which they were pushed. Any
// number of threads may push and pop.
#ifndef TROUPE_WORKER_ACTOR_MAILBOX_H_
#define TROUPE_WORKER_ACTOR_MAILBOX_H_

#include <cstddef>
#include <deque>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "proto/base/check.h"

namespace troupe {

template <typename T>
class Mailbox {
 public:
  explicit Mailbox(int capacity) : capacity_(capacity) {
    CHECK_GE(capacity, 1);
  }
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;

  // Waits for room. On an error the message is gone:
  //   DeadlineExceeded    no room within `timeout`; zero means "do not wait"
  //   FailedPrecondition  the mailbox is closed, or was closed meanwhile
  absl::Status Push(T message,
                    absl::Duration timeout = absl::InfiniteDuration())
      ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    const bool in_time = mutex_.AwaitWithTimeout(
        absl::Condition(this, &Mailbox::RoomOrClosed), timeout);
    if (closed_) return absl::FailedPreconditionError("the mailbox is closed");
    if (!in_time) {
      return absl::DeadlineExceededError(
          absl::StrCat("the mailbox stayed full (", capacity_,
                       " messages) for ", absl::FormatDuration(timeout)));
    }
    messages_.push_back(std::move(message));
    return absl::OkStatus();
  }

  // Waits for a message. Nothing once the mailbox is closed and empty.
  std::optional<T> Pop() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(this, &Mailbox::MessageOrClosed));
    if (messages_.empty()) return std::nullopt;
    std::optional<T> message = std::move(messages_.front());
    messages_.pop_front();
    return message;
  }

  // Refuses messages from now on; those that are queued can still be popped.
  // Wakes all that wait. May be called again.
  void Close() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    closed_ = true;
  }

  // Close, and destroys what is queued, on the caller's thread.
  void CloseAndDrop() ABSL_LOCKS_EXCLUDED(mutex_) {
    std::deque<T> dropped;  // destroyed without the lock
    absl::MutexLock lock(&mutex_);
    closed_ = true;
    dropped.swap(messages_);
  }

  int size() const ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return static_cast<int>(messages_.size());
  }
  int capacity() const { return capacity_; }

 private:
  bool RoomOrClosed() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return closed_ || static_cast<int>(messages_.size()) < capacity_;
  }
  bool MessageOrClosed() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return closed_ || !messages_.empty();
  }

  const int capacity_;
  mutable absl::Mutex mutex_;
  std::deque<T> messages_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_ACTOR_MAILBOX_H_
