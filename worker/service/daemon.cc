#include "worker/service/daemon.h"

#include <unistd.h>

#include <algorithm>
#include <random>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/log.h"
#include "proto/base/status.h"
#include "proto/build_version.h"
#include "worker/rank/resident_memory.h"

namespace troupe {
namespace {

constexpr absl::Duration kGoodbyeTimeout = absl::Milliseconds(500);
// How often one that leaves looks whether it may.
constexpr absl::Duration kLook = absl::Milliseconds(20);

// A refusal that will not change by asking again.
bool IsRefusal(const absl::Status& status, bool was_registered) {
  if (absl::IsFailedPrecondition(status) || absl::IsInvalidArgument(status) ||
      absl::IsPermissionDenied(status)) {
    return true;
  }
  // After a lost connection the scheduler may hold our old self for alive
  // until its lease ends.
  return absl::IsAlreadyExists(status) && !was_registered;
}

// From half of it on: not all workers of a cluster at once.
absl::Duration SomeOf(absl::Duration most) {
  std::random_device lot;
  return most * std::uniform_real_distribution<double>(0.5, 1)(lot);
}

bool IsSame(const RankRef& a, const RankRef& b) {
  return a.job() == b.job() && a.attempt() == b.attempt() &&
         a.rank() == b.rank() && a.text() == b.text();
}

// Whether this is said to the rank, of what its outbox hears.
bool IsFor(const SchedulerMessage& message, const RankRef& rank) {
  switch (message.message_case()) {
    case SchedulerMessage::kStop:
      return IsSame(message.stop().ref(), rank);
    case SchedulerMessage::kStoreValue:
      return IsSame(message.store_value().ref(), rank);
    case SchedulerMessage::kDone:
      return IsSame(message.done().ref(), rank);
    case SchedulerMessage::kStored:
      return IsSame(message.stored().ref(), rank);
    default:
      return false;
  }
}

}  // namespace

WorkerDaemon::WorkerDaemon(const WorkerDaemonOptions& options,
                           const RankResources& resources)
    : options_(options), resources_(resources) {}

WorkerDaemon::~WorkerDaemon() = default;

bool WorkerDaemon::stopped() const {
  absl::MutexLock lock(&mutex_);
  return stopped_;
}

bool WorkerDaemon::WaitToRetry(absl::Duration wait) {
  absl::MutexLock lock(&mutex_);
  const auto stopped = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return stopped_;
  };
  return !stops_.Await(mutex_, wait, stopped);
}

absl::StatusOr<std::unique_ptr<Session>> WorkerDaemon::Connect() {
  SessionOptions options = {.scheduler = options_.scheduler,
                            .trust = options_.trust,
                            .heartbeat = [this] { return Beat(); }};
  *options.registration.mutable_build() = ThisBuild();
  options.registration.set_protocol_version(
      options.registration.build().protocol());
  *options.registration.mutable_worker() = options_.description;
  if (options_.machine != nullptr) {
    *options.registration.mutable_worker()->mutable_machine() =
        options_.machine();
  }
  options.registration.set_pid(getpid());
  options.registration.set_measures_links(true);
  options.registration.set_checks_files(true);
  options.registration.set_address(options_.address);
  registered_as_ = AddUnfit(options.registration);
  if (holds_rank()) {
    HeldRank& held = *options.registration.mutable_held();
    *held.mutable_ref() = held_.ref;
    held.set_fingerprint(held_.fingerprint);
    held.set_run_id(held_.run_id);
    held.set_cluster_id(held_.cluster_id);
    held.set_first_step(rank_->first_step());
    held.set_step(rank_->steps_done());
    if (rank_->ended()) {
      const std::vector<KeptCopy> kept = rank_->Kept();
      held.mutable_kept()->Assign(kept.begin(), kept.end());
    }
  }
  return Session::Open(options);
}

WorkerDaemon::RegisteredAs WorkerDaemon::AddUnfit(
    Register& registration) const {
  if (options_.unfit == nullptr) return RegisteredAs::kFit;
  if (holds_rank()) return RegisteredAs::kUnknown;
  for (const std::string& why : options_.unfit()) {
    LogWarning(absl::StrCat("gets no rank: ", why));
    registration.add_unfit(why);
  }
  return registration.unfit().empty() ? RegisteredAs::kFit
                                      : RegisteredAs::kUnfit;
}

absl::Status WorkerDaemon::Run() {
  absl::Duration retry = options_.retry_first;
  std::string told;  // the last complaint; each is logged once
  while (!stopped()) {
    absl::StatusOr<std::unique_ptr<Session>> session = Connect();
    const bool refused = IsRefusal(session.status(), was_registered_);
    if (session.ok()) {
      was_registered_ = true;
      retry = options_.retry_first;
      told.clear();
      const absl::Status over = Serve(**session);
      if (stopped()) break;
      LogWarning(absl::StrCat(over.message(), "; connecting to ",
                              options_.scheduler, " again"));
    } else if (refused && !holds_rank()) {
      GiveUp(session.status());
      return session.status();
    } else if (told != session.status().message()) {
      told = std::string(session.status().message());
      LogWarning(refused
                     ? absl::StrCat("the scheduler at ", options_.scheduler,
                                    " refuses this worker: ", told,
                                    "; the rank here goes on and waits for a "
                                    "scheduler that takes it")
                     : absl::StrCat(told, "; trying until it does"));
    }
    if (!WaitToRetry(refused ? SomeOf(options_.retry_refused_max) : retry)) {
      break;
    }
    retry = std::min(
        2 * retry, holds_rank() ? options_.retry_held_max : options_.retry_max);
  }
  absl::Status why;
  absl::Status lost;
  {
    absl::MutexLock lock(&mutex_);
    why =
        absl::CancelledError(absl::StrCat("the worker stops: ", stop_reason_));
    lost = device_lost_;
  }
  GiveUp(why);
  return lost;
}

void WorkerDaemon::GiveUp(const absl::Status& why) {
  if (held_.outbox != nullptr) held_.outbox->Close(why);
  if (rank_ != nullptr) rank_->Abort(why);
  Replace(nullptr);
}

absl::Status WorkerDaemon::SendLast(const SendToScheduler& send,
                                    bool used_device, WorkerMessage message) {
  absl::Status fresh;
  if (used_device) {
    fresh = options_.start_afresh != nullptr ? options_.start_afresh()
                                             : resources_.device.StartAfresh();
  }
  const std::string reason(fresh.message());
  if (!fresh.ok()) {
    // Before the last words, so that the scheduler gives this worker nothing
    // new.
    WorkerMessage leaving;
    leaving.mutable_leaving()->set_reason(reason);
    send(std::move(leaving)).IgnoreError();
  }
  const bool keeps = message.ended().kept_size() > 0;
  const absl::Status sent = send(std::move(message));
  {
    absl::MutexLock lock(&mutex_);
    keeps_copies_ = keeps && fresh.ok();
    if (!keeps_copies_) savable_.reset();
    if (fresh.ok()) return sent;
    device_lost_ = fresh;
  }
  Stop(reason);
  return sent;
}

absl::Status WorkerDaemon::Serve(Session& session) {
  {
    absl::MutexLock lock(&mutex_);
    if (stopped_) return absl::CancelledError(stop_reason_);
    session_ = &session;
    ++sessions_;
  }
  LogInfo(absl::StrCat("joined the scheduler at ", options_.scheduler,
                       " as worker ", session.registered().worker_id()));
  const SendToScheduler send = [&session](WorkerMessage message) {
    return session.Send(std::move(message));
  };
  cluster_id_ = session.registered().cluster_id();
  if (holds_rank()) {
    held_.outbox->Attach(send);
  } else {
    Replace(nullptr);  // no scheduler counts any more on what it keeps
    absl::MutexLock lock(&mutex_);
    savable_.reset();
  }
  busy_ = holds_rank();
  SteadyNotification ends;
  std::thread fitness;
  if (registered_as_ != RegisteredAs::kFit) {
    fitness = std::thread([&] { LookAgain(session, ends); });
  }
  absl::Status over;
  while (over.ok()) {
    absl::StatusOr<SchedulerMessage> message = session.Receive();
    if (message.ok()) {
      // No look at the machine ends the session under it.
      if (message->has_start() || message->has_generate()) busy_ = true;
      Handle(*message, send);
      busy_ = holds_rank();
    } else {
      over = message.status();
    }
  }
  ends.Notify();
  if (fitness.joinable()) fitness.join();
  if (held_.outbox != nullptr) held_.outbox->Detach();
  // The clients that waited for these are gone with the session.
  ReplaceText(nullptr);
  measuring_.reset();
  job_reader_.reset();
  file_checker_.Detach();
  if (copies_saver_ != nullptr) copies_saver_->KeepWhatIsSaid();
  copies_saver_.reset();
  absl::MutexLock lock(&mutex_);
  session_ = nullptr;
  answered_ = false;
  if (stopped_) {
    return absl::CancelledError(
        absl::StrCat("the worker stops: ", stop_reason_));
  }
  return Annotate(over, holds_rank()
                            ? "the scheduler is gone, and the rank here goes on"
                            : "the scheduler is gone");
}

void WorkerDaemon::LookAgain(Session& session, SteadyNotification& over) const {
  const bool was_unfit = registered_as_ == RegisteredAs::kUnfit;
  while (!over.WaitForNotificationWithTimeout(options_.look_again)) {
    if (is_busy()) continue;
    const bool is_unfit = !options_.unfit().empty();
    // A rank that it was given meanwhile looks by itself.
    if (is_busy() || (was_unfit && is_unfit)) continue;
    if (!was_unfit && !is_unfit) return;
    const std::string why = is_unfit ? "its machine is not fit to run a rank"
                                     : "its machine is fit again";
    LogInfo(absl::StrCat("the worker registers anew: ", why));
    return session.Close(why, kGoodbyeTimeout);
  }
}

void WorkerDaemon::Begin(const Assignment& assignment,
                         const SendToScheduler& send) {
  // The scheduler assigns to idle workers only, so the one before is at its
  // very end, or forgotten; and its last words are stored, for the new
  // attempt is.
  if (held_.outbox != nullptr) held_.outbox->Forget();
  copies_saver_.reset();
  KeptMemory kept;
  if (rank_ != nullptr && assignment.has_recovery() &&
      held_.ref.job() == assignment.ref().job()) {
    kept = rank_->TakeKept();
  }
  Replace(nullptr);
  ReplaceText(nullptr);
  held_ = {.ref = assignment.ref(),
           .fingerprint = assignment.plan().fingerprint(),
           .run_id = assignment.run_id(),
           .cluster_id = cluster_id_,
           .outbox = std::make_shared<Outbox>()};
  held_.outbox->Attach(send);
  {
    absl::MutexLock lock(&mutex_);
    savable_.reset();
    if (!assignment.plan().job().checkpoint().directory().empty()) {
      savable_ = assignment.ref();
    }
    keeps_copies_ = answered_ = false;
  }
  const auto begun = std::make_shared<bool>(false);  // its thread's
  const SendToScheduler keep = [this, begun,
                                outbox = held_.outbox](WorkerMessage message) {
    const SendToScheduler into = [&](WorkerMessage said) {
      return outbox->Send(std::move(said));
    };
    return message.has_ended() ? SendLast(into, *begun, std::move(message))
                               : into(std::move(message));
  };
  Replace(std::make_unique<RankRunner>(
      assignment,
      RankRunnerOptions{.resources = resources_,
                        .send = keep,
                        .address = options_.address,
                        .unfit = options_.unfit,
                        .begins = [begun] { *begun = true; }},
      std::move(kept)));
}

void WorkerDaemon::Forget(const StopRank& stop) {
  if (!holds_rank() || rank_ == nullptr) return;
  LogWarning(absl::StrCat("job ", stop.ref().job(), ": rank ",
                          stop.ref().rank(), " is given up: ", stop.reason()));
  held_.outbox->Forget();
  rank_->Abort(absl::CancelledError(stop.reason()));
  copies_saver_.reset();
  if (rank_->ended()) rank_->DropKept();
  absl::MutexLock lock(&mutex_);
  savable_.reset();
}

void WorkerDaemon::Handle(const SchedulerMessage& message,
                          const SendToScheduler& send) {
  if (held_.outbox != nullptr && IsFor(message, held_.ref)) {
    held_.outbox->OnMessage(message);
  }
  // Nothing is measured beside work.
  if (message.has_start() || message.has_generate()) measuring_.reset();
  if (message.has_start()) {
    Begin(message.start(), send);
  } else if (message.has_measure_links()) {
    measuring_.reset();
    if (is_busy()) return;  // it was asked before that was known
    measuring_ = std::make_unique<LinkMeasuring>(message.measure_links(), send,
                                                 options_.address);
  } else if (message.has_stop_measuring()) {
    const int64_t stopped = message.stop_measuring().measurement();
    if (measuring_ != nullptr && measuring_->number() == stopped) {
      measuring_.reset();
    }
  } else if (message.store_value().ref().measurement() != 0) {
    if (measuring_ != nullptr) measuring_->OnValue(message.store_value());
  } else if (message.has_read_job()) {
    job_reader_ = nullptr;
    job_reader_ = std::make_unique<JobReader>(message.read_job(), send);
  } else if (message.has_check_files()) {
    file_checker_.Check(message.check_files(), send);
  } else if (message.has_generate()) {
    ReplaceText(nullptr);
    const SendToScheduler say = [this, send](WorkerMessage piece) {
      return piece.generated().done() ? SendLast(send, true, std::move(piece))
                                      : send(std::move(piece));
    };
    ReplaceText(std::make_unique<GenerationRunner>(
        message.generate(), GenerationOptions{.resources = resources_,
                                              .send = say,
                                              .address = options_.address}));
  } else if (message.has_stop_text()) {
    if (generation_ != nullptr) generation_->Stop(message.stop_text());
  } else if (message.store_value().ref().text() != 0) {
    if (generation_ != nullptr) generation_->OnValue(message.store_value());
  } else if (message.stop().forgotten()) {
    if (IsFor(message, held_.ref)) Forget(message.stop());
  } else if (message.has_save_copies()) {
    SaveKeptCopies(message.save_copies(), send);
  } else if (rank_ != nullptr) {
    {
      // First: a disk that hangs keeps nobody from leaving.
      absl::MutexLock lock(&mutex_);
      answered_ |= message.has_stop();
      if (message.stop().give_up_kept() && savable_.has_value() &&
          IsSame(message.stop().ref(), *savable_)) {
        savable_.reset();
      }
    }
    if (message.stop().give_up_kept()) copies_saver_.reset();
    rank_->OnMessage(message);
  }
}

void WorkerDaemon::SaveKeptCopies(const SaveCopies& request,
                                  const SendToScheduler& send) {
  {
    absl::MutexLock lock(&mutex_);
    answered_ = true;  // to one that leaves with them
  }
  const bool same =
      copies_saver_ != nullptr && copies_saver_->token() == request.token();
  if (same && request.has_commits()) copies_saver_->Keep();
  copies_saver_.reset();
  if (rank_ != nullptr && IsSame(request.ref(), held_.ref)) {
    copies_saver_ =
        std::make_unique<CopiesSaver>(request, rank_->kept(), resources_, send);
    return;
  }
  WorkerMessage message;
  CopiesSaved& answer = *message.mutable_copies_saved();
  *answer.mutable_ref() = request.ref();
  answer.set_token(request.token());
  answer.set_error("the rank that kept them is not here any more");
  send(std::move(message)).IgnoreError();
}

void WorkerDaemon::Replace(std::unique_ptr<RankRunner> rank) {
  {
    absl::MutexLock lock(&rank_mutex_);
    rank_.swap(rank);
  }
  // The old one ends here: its last words wait for the heartbeats' thread.
}

void WorkerDaemon::ReplaceText(std::unique_ptr<GenerationRunner> text) {
  {
    absl::MutexLock lock(&rank_mutex_);
    generation_.swap(text);
  }
  // The old one ends here, which takes as long as its thread.
}

bool WorkerDaemon::is_busy() const {
  if (busy_) return true;
  absl::MutexLock lock(&rank_mutex_);
  return generation_ != nullptr && !generation_->ended();
}

Heartbeat WorkerDaemon::Beat() const {
  Heartbeat heartbeat;
  heartbeat.set_memory_bytes(ResidentMemoryBytes());
  if (options_.machine != nullptr) {
    *heartbeat.mutable_machine() = options_.machine();
  }
  absl::MutexLock lock(&rank_mutex_);
  if (rank_ != nullptr && !rank_->ended()) {
    *heartbeat.mutable_progress() = rank_->Progress();
  }
  return heartbeat;
}

void WorkerDaemon::SaveFirst(const std::string& reason) {
  if (session_ == nullptr || !savable_.has_value()) return;
  WorkerMessage message;
  *message.mutable_leaving()->mutable_ref() = *savable_;
  message.mutable_leaving()->set_reason(reason);
  // What it was told before its rank ended is no answer.
  if (keeps_copies_) answered_ = false;
  if (!session_->Send(std::move(message)).ok()) return;
  // Without the scheduler that was asked nothing is saved.
  const auto ended = [this,
                      asked = sessions_]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return !savable_.has_value() || session_ == nullptr || sessions_ != asked;
  };
  const auto answered = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return ended() || answered_;
  };
  const absl::Time until = SteadyNow() + options_.leaving_answer_max;
  while (!stops_.Await(mutex_, kLook, answered) && SteadyNow() < until) {
  }
  if (!answered()) {
    LogWarning(absl::StrCat("leaving without a checkpoint: the scheduler at ",
                            options_.scheduler, " has not answered for ",
                            absl::FormatDuration(options_.leaving_answer_max)));
    return;
  }
  // The scheduler, which hears how the disks of all ranks get on, ends the
  // session where they do not.
  mutex_.Await(absl::Condition(&ended));
}

void WorkerDaemon::Stop(const std::string& reason) {
  absl::MutexLock lock(&mutex_);
  if (stopped_) return;
  SaveFirst(reason);
  stopped_ = true;
  stop_reason_ = reason;
  stops_.Say();
  if (session_ != nullptr) session_->Close(reason, kGoodbyeTimeout);
}

}  // namespace troupe
