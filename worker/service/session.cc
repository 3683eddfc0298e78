#include "worker/service/session.h"

#include <grpcpp/grpcpp.h>

#include <deque>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "proto/base/clock.h"
#include "proto/base/status.h"
#include "proto/base/steady_time.h"
#include "proto/trust/grpc/credentials.h"
#include "proto/trust/grpc/why_not_connected.h"
#include "proto/worker.grpc.pb.h"
#include "worker/service/peer_silence.h"

namespace troupe {
namespace {

absl::Status ToAbsl(const grpc::Status& status) {
  // The two enumerations have the same numbers.
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()),
                      status.error_message());
}

class GrpcSession final : public Session {
 public:
  GrpcSession(const SessionOptions& options,
              std::shared_ptr<grpc::Channel> channel)
      : options_(options), stub_(Workers::NewStub(std::move(channel))) {
    stream_ = stub_->Session(&context_);
  }

  ~GrpcSession() override {
    End();
    for (std::thread* thread : {&writer_, &watch_}) {
      if (thread->joinable()) thread->join();
    }
    // A stream must be read to its end before its status may be asked for.
    if (!finished_) FinishStream().IgnoreError();
  }

  absl::Status Start() {
    WorkerMessage first;
    *first.mutable_register_() = options_.registration;
    if (!stream_->Write(first)) return FinishStream();
    writer_ = std::thread([this] { WriteLoop(); });
    SchedulerMessage answer;
    if (!stream_->Read(&answer)) return FinishStream();
    if (!answer.has_registered()) {
      return absl::InternalError(
          "the scheduler's first message is not Registered");
    }
    {
      absl::MutexLock lock(&mutex_);
      registered_ = answer.registered();
      is_registered_ = true;
      work_.Say();
    }
    watch_ = std::thread([this] { WatchLoop(); });
    return absl::OkStatus();
  }

  const Registered& registered() const override { return registered_; }

  absl::Status Send(WorkerMessage message) override {
    absl::MutexLock lock(&mutex_);
    const auto has_room = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
      return HasRoom();
    };
    if (!room_.Await(mutex_, kSilenceMax, has_room)) {
      GiveUp(absl::StrCat("has read nothing for ",
                          absl::FormatDuration(kSilenceMax)));
    }
    if (closing_) {
      return absl::UnavailableError("the session with the scheduler is over");
    }
    Enqueue(std::move(message));
    return absl::OkStatus();
  }

  absl::StatusOr<SchedulerMessage> Receive() override {
    SchedulerMessage message;
    if (stream_->Read(&message)) return message;
    absl::Status status = FinishStream();
    if (!status.ok()) return status;
    return absl::UnavailableError("the scheduler ended the session");
  }

  void Close(const std::string& reason, absl::Duration timeout) override {
    absl::MutexLock lock(&mutex_);
    if (!closing_) {
      WorkerMessage goodbye;
      goodbye.mutable_goodbye()->set_reason(reason);
      Enqueue(std::move(goodbye));
    }
    EndQueue();
    // The writer ends our half of the stream; the scheduler, having read it
    // all, ends the other. To cancel before that could lose the last words.
    const auto is_read = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
      return read_to_end_;
    };
    over_.Await(mutex_, timeout, is_read);
    Break();
    context_.TryCancel();
  }

  void End() {
    absl::MutexLock lock(&mutex_);
    Break();
    context_.TryCancel();
  }

 private:
  void Enqueue(WorkerMessage message) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    queue_bytes_ += message.ByteSizeLong();
    queue_.push_back(std::move(message));
    work_.Say();
  }

  bool HasRoom() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return closing_ || queue_bytes_ < kQueueBytesMax;
  }

  void EndQueue() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    closing_ = true;
    work_.Say();
    room_.Say();
  }

  void Break() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    EndQueue();
    broken_ = true;
    over_.Say();
  }

  // Ends the session, for what the scheduler does or does not.
  void GiveUp(const std::string& what) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    given_up_ = absl::UnavailableError(
        absl::StrCat("the scheduler at ", options_.scheduler, " ", what));
    Break();
    context_.TryCancel();
  }

  // Until when the writer may wait: the next heartbeat, or the end of the time
  // that the scheduler has for its first answer.
  absl::Duration Patience(absl::Time opened, absl::Time last_beat) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    if (!is_registered_) {
      return opened + options_.register_timeout - SteadyNow();
    }
    return last_beat + absl::Seconds(registered_.heartbeat_seconds()) -
           SteadyNow();
  }

  // The writer: messages as they come, heartbeats between them.
  void WriteLoop() {
    const absl::Time opened = SteadyNow();
    absl::Time last_beat = opened;
    while (true) {
      WorkerMessage message;
      bool beats = false;
      {
        absl::MutexLock lock(&mutex_);
        const bool was_registered = is_registered_;
        const auto has_work = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
          return !queue_.empty() || closing_ ||
                 is_registered_ != was_registered;
        };
        work_.Await(mutex_, Patience(opened, last_beat), has_work);
        if (broken_) return;
        if (closing_ && queue_.empty()) break;
        const bool late = Patience(opened, last_beat) <= absl::ZeroDuration();
        if (late && !is_registered_) {
          GiveUp("did not answer the registration");
          return;
        }
        if (late) {
          last_beat = SteadyNow();
          beats = true;
        } else if (!queue_.empty()) {
          message = std::move(queue_.front());
          queue_.pop_front();
          const bool was_full = !HasRoom();
          queue_bytes_ -= message.ByteSizeLong();
          if (was_full) room_.Say();
        } else {
          continue;
        }
      }
      if (beats) {
        *message.mutable_heartbeat() =
            options_.heartbeat ? options_.heartbeat() : Heartbeat();
      }
      const bool written = stream_->Write(message);
      if (written) continue;
      absl::MutexLock lock(&mutex_);
      Break();
      return;
    }
    stream_->WritesDone();
  }

  // Whether the scheduler's machine answers. A thread of its own: a writer
  // whose messages nobody reads waits.
  void WatchLoop() {
    constexpr int kLooks = 10;
    const RealClock clock;
    PeerSilence silence(context_.peer());
    absl::MutexLock lock(&mutex_);
    const auto is_broken = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
      return broken_;
    };
    while (!over_.Await(mutex_, options_.unanswered_max / kLooks, is_broken)) {
      const absl::Duration silent = silence.Look(clock.MonotonicNanos());
      if (silent < options_.unanswered_max) continue;
      GiveUp(absl::StrCat(
          "cannot be reached: its machine has acknowledged nothing for ",
          absl::FormatDuration(options_.unanswered_max)));
    }
  }

  absl::Status FinishStream() {
    {
      absl::MutexLock lock(&mutex_);
      read_to_end_ = true;
      Break();
    }
    if (writer_.joinable()) writer_.join();
    SchedulerMessage rest;
    while (stream_->Read(&rest)) {
    }
    finished_ = true;
    const absl::Status status = ToAbsl(stream_->Finish());
    absl::MutexLock lock(&mutex_);
    return given_up_.ok() ? status : given_up_;
  }

  const SessionOptions options_;
  std::unique_ptr<Workers::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<WorkerMessage, SchedulerMessage>>
      stream_;
  std::thread writer_;
  std::thread watch_;
  Registered registered_;  // written once, before Open returns
  bool finished_ = false;  // the reader's

  absl::Mutex mutex_;
  SteadyCondition work_;  // for the writer
  SteadyCondition room_;  // in the queue
  SteadyCondition over_;  // broken, or read to the end
  std::deque<WorkerMessage> queue_ ABSL_GUARDED_BY(mutex_);
  size_t queue_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool read_to_end_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_registered_ ABSL_GUARDED_BY(mutex_) = false;
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;   // nothing more is queued
  bool broken_ ABSL_GUARDED_BY(mutex_) = false;    // nothing more is sent
  absl::Status given_up_ ABSL_GUARDED_BY(mutex_);  // not OK: by this side
};

}  // namespace

absl::StatusOr<std::unique_ptr<Session>> Session::Open(
    const SessionOptions& options) {
  const absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> credentials =
      ChannelCredentials(options.trust, PeerRole::kWorker, options.scheduler);
  // They were good at the start, and may be so again: somebody replaces them.
  if (!credentials.ok()) {
    return absl::UnavailableError(credentials.status().message());
  }
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(256 << 20);  // a plan of many ranks
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  // A scheduler that is just starting is found soon.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 20'000);
  arguments.SetInt(
      GRPC_ARG_KEEPALIVE_TIMEOUT_MS,
      static_cast<int>(absl::ToInt64Milliseconds(Session::kSilenceMax)));
  const std::shared_ptr<grpc::Channel> channel =
      grpc::CreateCustomChannel(options.scheduler, *credentials, arguments);
  if (!channel->WaitForConnected(
          std::chrono::system_clock::now() +
          absl::ToChronoNanoseconds(options.connect_timeout))) {
    return absl::UnavailableError(absl::StrCat("no scheduler answers at ",
                                               options.scheduler, " (",
                                               WhyNotConnected(channel), ")"));
  }
  auto session = std::make_unique<GrpcSession>(options, channel);
  const absl::Status started = session->Start();
  if (!started.ok()) return started;
  return session;
}

}  // namespace troupe
