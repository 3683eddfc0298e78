// An actor: a mailbox with a capacity and one thread. Its state is private to
// its handler, which takes one message at a time and runs to completion, so
// that the state needs no locks. This file knows nothing of training.
//
//   Actor<int> lane({.name = "lane compute", .capacity = 1},
//                   [this](int instruction) { Run(instruction); });
//   lane.Send(7);
//
// Declare an actor after the state that its handler touches: its destructor
// joins the thread before that state goes. A message is any movable type; for
// "run this" use Actor<Task>.
#ifndef TROUPE_WORKER_ACTOR_ACTOR_H_
#define TROUPE_WORKER_ACTOR_ACTOR_H_

#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/base/check.h"
#include "worker/actor/mailbox.h"
#include "worker/actor/thread_name.h"

namespace troupe {

// A message that is work to do: Actor<Task>(options, RunTask).
using Task = absl::AnyInvocable<void()>;
inline void RunTask(Task task) { task(); }

struct ActorOptions {
  std::string name;   // of the thread; the kernel keeps 15 characters
  int capacity = 64;  // messages that wait
  // Called first and last on the thread; either may be empty.
  std::function<void()> at_start;
  std::function<void()> at_end;
};

// What Stop does with messages that wait; the one in hand always completes.
enum class StopMode { kFinishQueued, kDropQueued };

// Thread-safe, but for Stop and destruction, which belong to the owner and
// never to the actor's own thread.
template <typename Message>
class Actor {
 public:
  Actor(ActorOptions options, std::function<void(Message)> handler)
      : name_(std::move(options.name)),
        at_start_(std::move(options.at_start)),
        at_end_(std::move(options.at_end)),
        handler_(std::move(handler)),
        mailbox_(options.capacity),
        thread_([this] { Loop(); }),
        thread_id_(thread_.get_id()) {}
  // Finishes what is queued.
  ~Actor() { Stop(StopMode::kFinishQueued); }
  Actor(const Actor&) = delete;
  Actor& operator=(const Actor&) = delete;

  // Waits while the mailbox is full. After Stop the message is dropped.
  // From the actor's own thread only where there surely is room: a wait for
  // itself would never end, and is a CHECK failure.
  void Send(Message message) {
    const bool own_thread = std::this_thread::get_id() == thread_id_;
    const absl::Status status = mailbox_.Push(
        std::move(message),
        own_thread ? absl::ZeroDuration() : absl::InfiniteDuration());
    CHECK(status.ok() || absl::IsFailedPrecondition(status))
        << "actor " << name_ << " sent itself a message: " << status.message();
  }

  // The same, with the errors of Mailbox::Push and a bound on the wait.
  absl::Status SendWithin(absl::Duration timeout, Message message) {
    return mailbox_.Push(std::move(message), timeout);
  }

  // Refuses new messages, deals with those that wait as `mode` says, and joins
  // the thread. Senders that wait for room return. A second call does nothing.
  void Stop(StopMode mode) {
    if (!thread_.joinable()) return;
    CHECK(std::this_thread::get_id() != thread_id_)
        << "actor " << name_ << " cannot stop itself";
    if (mode == StopMode::kFinishQueued) {
      mailbox_.Close();
    } else {
      mailbox_.CloseAndDrop();
    }
    thread_.join();
  }

  const std::string& name() const { return name_; }
  int queued() const { return mailbox_.size(); }

 private:
  void Loop() {
    NameThisThread(name_);
    if (at_start_) at_start_();
    while (std::optional<Message> message = mailbox_.Pop()) {
      handler_(*std::move(message));
    }
    if (at_end_) at_end_();
  }

  const std::string name_;
  const std::function<void()> at_start_;
  const std::function<void()> at_end_;
  const std::function<void(Message)> handler_;
  Mailbox<Message> mailbox_;
  std::thread thread_;  // after all that it uses
  const std::thread::id thread_id_;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_ACTOR_ACTOR_H_
