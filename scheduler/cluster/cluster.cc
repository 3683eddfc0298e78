#include "scheduler/cluster/cluster.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/one_line.h"
#include "proto/base/status.h"
#include "scheduler/cluster/wait_reason.h"

namespace troupe {
namespace {

std::string WaitsForStore(const absl::Status& store) {
  return absl::StrCat("waits until the scheduler can write its store again: ",
                      store.message());
}

}  // namespace

Cluster::Cluster(const Limits& limits, const JobCompiler& compiler)
    : limits_(limits),
      compiler_(compiler),
      workers_(limits),
      jobs_(limits),
      runs_(limits, compiler, workers_, jobs_),
      generations_(limits, compiler, workers_) {}

void Cluster::Restore(std::vector<StoredJob> jobs, absl::Time now,
                      Actions& actions) {
  moved_at_ = now;
  last_tick_ = now;  // what comes before the first one may be a pause, too
  std::map<JobId, std::shared_ptr<const HandOut>> handed;
  for (StoredJob& stored : jobs) {
    handed[JobId(stored.row.status.id())] = std::move(stored.hand_out);
    // A job that an older build took and this one refuses still has a place;
    // it fails, with the reason, when it is its turn.
    const int ranks = compiler_.RanksNeeded(stored.row.spec).value_or(1);
    jobs_.Restore(std::move(stored), ranks, actions);
  }
  for (const auto& [id, job] : jobs_.all()) {
    if (job->ended() || job->status.state() == QUEUED) continue;
    runs_.Resume(*job, std::move(handed[id]), now, actions);
  }
  Schedule(now, actions);
}

absl::StatusOr<WorkerId> Cluster::RegisterWorker(const Register& request,
                                                 absl::Time now,
                                                 Actions& actions) {
  ASSIGN_OR_RETURN(const WorkerId id, workers_.Add(request, now));
  moved_at_ = now;
  SendToWorker send{id, {}};
  Registered& registered = *send.message.mutable_registered();
  registered.set_worker_id(id.value());
  registered.set_heartbeat_seconds(absl::ToDoubleSeconds(limits_.heartbeat));
  registered.set_lease_seconds(absl::ToDoubleSeconds(limits_.lease));
  actions.push_back(std::move(send));
  runs_.CameBack(*workers_.Find(id), request.held(), now, actions);
  Settle(now, actions);
  return id;
}

void Cluster::HandleMessage(WorkerId from, const WorkerMessage& message,
                            absl::Time now, Actions& actions) {
  Worker* worker = workers_.Find(from);
  if (worker == nullptr || !worker->alive()) return;
  worker->heard = now;
  worker->status.set_last_heard_unix_ms(absl::ToUnixMillis(now));
  Hear(*worker, message, now, actions);
  Settle(now, actions);
}

void Cluster::Hear(Worker& from, const WorkerMessage& message, absl::Time now,
                   Actions& actions) {
  switch (message.message_case()) {
    case WorkerMessage::kHeartbeat:
      from.status.set_memory_bytes(message.heartbeat().memory_bytes());
      if (message.heartbeat().has_machine()) {
        *from.status.mutable_description()->mutable_machine() =
            message.heartbeat().machine();
      }
      break;
    case WorkerMessage::kGoodbye:
      return Lose(from.id, WorkerStatus::LEFT, message.goodbye().reason(), now,
                  actions);
    case WorkerMessage::kCheckpointJob:
    case WorkerMessage::kGenerated:
      return generations_.HandleMessage(from.id, message, now, actions);
    case WorkerMessage::kStoreSet:
    case WorkerMessage::kStoreGet:
      // Of the rank of a text or of a job: each knows its own.
      generations_.HandleMessage(from.id, message, now, actions);
      break;
    case WorkerMessage::kLeaving:
      workers_.Leave(from.id);
      break;
    case WorkerMessage::kCopiesSaved:
      return runs_.HandleCopiesSaved(from.id, message.copies_saved(), now,
                                     actions);
    default:
      break;
  }
  runs_.HandleMessage(from.id, message, now, actions);
}

void Cluster::Disconnected(WorkerId id, const std::string& reason,
                           absl::Time now, Actions& actions) {
  const Worker* worker = workers_.Find(id);
  if (worker == nullptr || !worker->alive()) return;
  Lose(id, WorkerStatus::LOST, reason, now, actions);
  Settle(now, actions);
}

void Cluster::Lose(WorkerId id, WorkerStatus::State state,
                   const std::string& said, absl::Time now, Actions& actions) {
  const std::string reason = OneLine(said, limits_.reason_bytes_max);
  const Worker worker = *workers_.Find(id);
  workers_.Remove(id, state, reason);
  moved_at_ = now;
  actions.push_back(DropWorker{id, reason});
  if (worker.status.text() != 0) {
    generations_.WorkerGone(worker, reason, now, actions);
  } else if (worker.status.job() != 0) {
    runs_.WorkerGone(JobId(worker.status.job()), id,
                     state == WorkerStatus::LOST ? "was lost" : "left", reason,
                     now, actions);
  }
}

absl::StatusOr<Compilation> Cluster::PlanJob(const JobSpec& spec) const {
  ASSIGN_OR_RETURN(const int needed, compiler_.RanksNeeded(spec));
  if (workers_.alive_count() < needed) {
    Compilation narrower =
        ElasticCompilation(compiler_.Narrower(spec, workers_.alive_count()),
                           compiler_, workers_.Alive(), /*more_than=*/0);
    if (!narrower.choices.empty()) {
      narrower.spec = narrower.choices.front().spec;
      return narrower;
    }
    return absl::FailedPreconditionError(
        absl::StrCat("the job ", WaitReasons(workers_).For(needed)));
  }
  return CompilationFor(spec, needed, workers_);
}

absl::StatusOr<Compilation> Cluster::Consider(const JobSpec& spec) const {
  ASSIGN_OR_RETURN(const int needed, compiler_.RanksNeeded(spec));
  RETURN_IF_ERROR(CheckQueue());
  return CompilationFor(spec, needed, workers_);
}

absl::Status Cluster::CheckQueue() const {
  if (jobs_.queued() < limits_.jobs_queued_max) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("the queue is full: ", limits_.jobs_queued_max,
                   " jobs wait; submit again when some have started"));
}

absl::StatusOr<JobId> Cluster::Submit(const JobSpec& spec,
                                      const CompileOutcome& considered,
                                      absl::Time now, Actions& actions) {
  ASSIGN_OR_RETURN(const int needed, compiler_.RanksNeeded(spec));
  RETURN_IF_ERROR(CheckQueue());
  const JobId id = jobs_.Add(spec, needed, now, actions).id;
  Schedule(now, actions, {.job = id, .outcome = &considered});
  return id;
}

void Cluster::Compiled(JobId id, const Compilation& compilation,
                       const CompileOutcome& outcome, absl::Time now,
                       Actions& actions) {
  if (!Awaits(id, compilation)) return;  // it was cancelled meanwhile
  Job* job = jobs_.Find(id);
  job->compilation = 0;
  // A refusal holds for the workers that it was asked for; for others the
  // question is asked again, unless it took too long.
  const bool current = compilation.changes == workers_.changes() ||
                       absl::IsDeadlineExceeded(outcome.refusal);
  if (job->status.state() == RUNNING) {
    Widen(*job, compilation, outcome, now, actions);
    return Settle(now, actions);
  }
  if (outcome.fits() && outcome.idle) {
    return Schedule(now, actions, {.job = id, .outcome = &outcome});
  }
  if (current && outcome.fits()) {
    job->too_small_at = compilation.changes;
    jobs_.SetWaitReason(
        *job,
        absl::StrCat("waits for busy workers, for the idle ones have too ",
                     "little memory: ", outcome.refusal.message()),
        actions);
  } else if (current && compilation.elastic) {
    job->too_small_at = compilation.changes;
    jobs_.SetWaitReason(
        *job,
        absl::StrCat("waits for more workers: ", outcome.refusal.message()),
        actions);
  } else if (current) {
    jobs_.SetState(*job, FAILED, std::string(outcome.refusal.message()), now,
                   actions);
  }
  Schedule(now, actions);
}

void Cluster::Stored(JobId id, int32_t attempt, const absl::Status& stored,
                     absl::Time now, Actions& actions) {
  if (id == JobId()) store_will_tell_ = false;
  const bool again = stored.ok() && !store_.ok();
  store_ = stored;
  Job* job = jobs_.Find(id);
  if (job != nullptr && job->attempt == attempt && runs_.AwaitsStore(*job)) {
    if (stored.ok()) {
      runs_.HandOut(*job, now, actions);
    } else {
      store_asked_ = now;
      runs_.NotStored(*job, WaitsForStore(store_), now, actions);
    }
  }
  if (again || !stored.ok()) Schedule(now, actions);
}

void Cluster::AskTheStore(absl::Time now, Actions& actions) {
  if (store_.ok() || store_will_tell_) return;
  if (now - store_asked_ < limits_.store_retry) return;
  store_asked_ = now;
  store_will_tell_ = true;
  actions.push_back(AwaitStored{});
}

absl::Status Cluster::Cancel(JobId id, absl::Time now, Actions& actions) {
  RETURN_IF_ERROR(FindJob(id).status());
  Job& job = *jobs_.Find(id);
  if (job.ended()) return absl::OkStatus();
  if (job.status.state() == QUEUED) {
    job.cancelled = true;
    job.compilation = 0;
    jobs_.SetState(job, CANCELLED, "before its start", now, actions);
    Schedule(now, actions);
  } else {
    runs_.Cancel(job, now, actions);
    Settle(now, actions);
  }
  return absl::OkStatus();
}

absl::Status Cluster::SaveAndCancel(JobId id, absl::Time now,
                                    Actions& actions) {
  RETURN_IF_ERROR(FindJob(id).status());
  Job& job = *jobs_.Find(id);
  if (!job.spec.checkpoint().has_directory()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "job ", id.value(), " has no checkpoint.directory to be saved in; it ",
        "can be cancelled without a checkpoint"));
  }
  const bool stops = job.status.state() == STOPPING;
  if (job.ended() || job.run == nullptr || (stops && !job.run->saving)) {
    return Cancel(id, now, actions);
  }
  runs_.SaveAndCancel(job, "cancelled by its user", now, actions);
  Settle(now, actions);
  return absl::OkStatus();
}

absl::StatusOr<std::string> Cluster::CheckpointOf(
    const GenerateRequest& request) const {
  if (!request.checkpoint().empty()) return request.checkpoint();
  if (request.job() == 0) {
    return absl::InvalidArgumentError(
        "job: give a job's number or a checkpoint's directory");
  }
  ASSIGN_OR_RETURN(const Job* job, FindJob(JobId(request.job())));
  if (job->status.checkpoints().empty()) {
    return absl::NotFoundError(
        absl::StrCat("job ", request.job(), " has no checkpoint"));
  }
  return job->status.checkpoints().rbegin()->path();
}

absl::StatusOr<int64_t> Cluster::Generate(const GenerateRequest& request,
                                          absl::Time now, Actions& actions) {
  ASSIGN_OR_RETURN(const std::string checkpoint, CheckpointOf(request));
  auto text = generations_.Start(request, checkpoint, now, actions);
  Settle(now, actions);
  return text;
}

void Cluster::Drain(const std::string& why, absl::Time now, Actions& actions) {
  draining_ = true;
  for (const auto& [id, job] : jobs_.all()) {
    if (job->run == nullptr) continue;
    if (job->status.state() == RUNNING && runs_.MayMove(*job)) {
      runs_.SaveAndMove(*job, why, now, actions);
    } else {
      runs_.SaveAndCancel(*job, why, now, actions);
    }
  }
  Schedule(now, actions);
}

void Cluster::ForgivePause(absl::Time now) {
  const absl::Duration pause = now - last_tick_ - limits_.tick_max;
  last_tick_ = now;
  if (pause <= absl::ZeroDuration()) return;
  workers_.Forgive(pause, now);
  runs_.Forgive(pause, now);
  generations_.Forgive(pause, now);
}

void Cluster::Tick(absl::Time now, Actions& actions) {
  ForgivePause(now);
  AskTheStore(now, actions);
  std::vector<StuckWorker> lost;
  for (const WorkerId id : workers_.Expired(now)) {
    const absl::Duration silent =
        absl::Trunc(now - workers_.Find(id)->heard, absl::Milliseconds(100));
    lost.push_back(
        {id, absl::StrCat("not heard for ", absl::FormatDuration(silent))});
  }
  for (const JobId id : runs_.Unstored(now)) {
    store_ = absl::DeadlineExceededError(absl::StrCat(
        "it has not answered for ", absl::FormatDuration(limits_.start_max)));
    runs_.NotStored(*jobs_.Find(id), WaitsForStore(store_), now, actions);
  }
  for (StuckWorker& stuck : runs_.Tick(now, actions)) {
    lost.push_back(std::move(stuck));
  }
  for (StuckWorker& stuck : generations_.Tick(now, actions)) {
    lost.push_back(std::move(stuck));
  }
  for (const StuckWorker& stuck : lost) {
    // It may be there twice: gone since the first time, even forgotten.
    const Worker* worker = workers_.Find(stuck.worker);
    if (worker != nullptr && worker->alive()) {
      Lose(stuck.worker, WorkerStatus::LOST, stuck.reason, now, actions);
    }
  }
  if (IsCalm(now)) {
    runs_.NarrowWaiting(now, actions);
    AskToWiden(actions);
  }
  Settle(now, actions);
}

bool Cluster::Awaits(JobId id, const Compilation& asked) const {
  const Job* job = jobs_.Find(id);
  return job != nullptr && job->compilation == asked.number &&
         (job->status.state() == QUEUED || MayWiden(*job));
}

absl::StatusOr<const Job*> Cluster::FindJob(JobId id) const {
  const Job* job = jobs_.Find(id);
  if (job == nullptr) {
    return absl::NotFoundError(absl::StrCat("there is no job ", id.value()));
  }
  return job;
}

void Cluster::Schedule(absl::Time now, Actions& actions, const Offer& offer) {
  runs_.RecoverWaiting(now, actions);
  awaits_calm_ = false;
  const Job* first = nullptr;     // the job that holds back those behind it
  WaitReasons reasons(workers_);  // nobody starts once one waits for idle ones
  const std::vector<JobId> queue(jobs_.queue().begin(), jobs_.queue().end());
  for (const JobId id : queue) {
    Job* const job = jobs_.Find(id);
    if (draining_) {
      jobs_.SetWaitReason(*job,
                          "waits for the next scheduler, for this one "
                          "was asked to end",
                          actions);
    } else if (job->ranks_needed > workers_.alive_count() &&
               !MayStartNarrow(*job, now)) {
      jobs_.SetWaitReason(*job, reasons.For(job->ranks_needed), actions);
    } else if (first != nullptr) {
      jobs_.SetWaitReason(
          *job, absl::StrCat("waits behind job ", first->id.value()), actions);
    } else if (const Job* other = jobs_.SavesInPlaceOf(*job)) {
      jobs_.SetWaitReason(
          *job,
          absl::StrCat("waits for the end of job ", other->id.value(),
                       ", whose checkpoint.directory is the same"),
          actions);
    } else if (workers_.idle_count() < job->ranks_needed &&
               !MayStartNarrow(*job, now)) {
      first = job;
      jobs_.SetWaitReason(*job, reasons.For(job->ranks_needed), actions);
    } else if (!store_.ok()) {
      first = job;
      jobs_.SetWaitReason(*job, WaitsForStore(store_), actions);
    } else if (offer.job != id || !Start(*job, *offer.outcome, now, actions)) {
      first = job;
      AskToCompile(*job, actions);
    }
  }
  queue_waits_ = first != nullptr;
  scheduled_at_ = workers_.changes();  // with those that it gave to jobs
}

bool Cluster::MayStartNarrow(const Job& job, absl::Time now) {
  const int idle = workers_.idle_count();
  if (!job.spec.has_elastic() || idle >= job.ranks_needed ||
      idle < std::max(1, job.spec.elastic().min_workers())) {
    return false;
  }
  const bool starts = job.moved || IsCalm(now);
  awaits_calm_ |= !starts;
  return starts;
}

bool Cluster::MayWiden(const Job& job) const {
  return job.status.state() == RUNNING && job.run != nullptr &&
         !job.run->stopping() && job.spec.has_elastic() &&
         static_cast<int>(job.run->ranks.size()) < job.ranks_needed &&
         runs_.MayMove(job);
}

void Cluster::AskToWiden(Actions& actions) {
  if (workers_.idle_count() == 0 || queue_waits_ || draining_) return;
  for (const auto& [id, job] : jobs_.all()) {
    if (!MayWiden(*job) || job->compilation != 0 ||
        job->not_wider_at == workers_.changes()) {
      continue;
    }
    std::vector<const Worker*> candidates = workers_.Idle();
    for (const RankSeat& seat : job->run->ranks) {
      const Worker* const worker = workers_.Find(seat.worker);
      if (worker != nullptr && !worker->leaving) candidates.push_back(worker);
    }
    const int there = static_cast<int>(candidates.size());
    std::vector<JobSpec> ways = compiler_.Narrower(job->spec, there);
    if (there >= job->ranks_needed) ways = {job->spec};
    job->not_wider_at = workers_.changes();
    Compilation asked = ElasticCompilation(
        ways, compiler_, candidates, static_cast<int>(job->run->ranks.size()));
    if (asked.choices.empty()) continue;
    AskToCompile(*job, std::move(asked), actions);
  }
}

void Cluster::Widen(Job& job, const Compilation& compilation,
                    const CompileOutcome& outcome, absl::Time now,
                    Actions& actions) {
  if (!outcome.fits() || compilation.changes != workers_.changes()) return;
  // Short of all its ranks, only for what is quicker.
  constexpr double kWorthIt = 0.95;
  const bool all = static_cast<int>(outcome.workers.size()) == job.ranks_needed;
  if (!all && outcome.compiled.outline->prediction().step_seconds() >
                  kWorthIt * job.plan->prediction().step_seconds()) {
    return;
  }
  runs_.SaveAndMove(
      job,
      absl::StrCat("there are workers for ", outcome.workers.size(),
                   " ranks, and it has ", job.run->ranks.size()),
      now, actions);
}

bool Cluster::Start(Job& job, const CompileOutcome& outcome, absl::Time now,
                    Actions& actions) {
  if (!outcome.fits()) return false;
  // One for fewer ranks, and others have come.
  const int ranks = static_cast<int>(outcome.workers.size());
  if (ranks < job.ranks_needed && workers_.idle_count() >= job.ranks_needed) {
    return false;
  }
  std::vector<const Worker*> workers;
  for (const WorkerId id : outcome.workers) {
    workers.push_back(workers_.Find(id));
    if (workers.back() == nullptr || !workers.back()->idle()) return false;
  }
  job.compilation = 0;
  runs_.Start(job, outcome.compiled, workers, now, actions);
  return true;
}

void Cluster::AskToCompile(Job& job, Actions& actions) {
  if (job.compilation != 0 || job.too_small_at == workers_.changes()) return;
  const int idle = workers_.idle_count();
  Compilation asked =
      idle >= job.ranks_needed
          ? CompilationFor(job.spec, job.ranks_needed, workers_)
          : ElasticCompilation(compiler_.Narrower(job.spec, idle), compiler_,
                               workers_.Idle(), /*more_than=*/0);
  if (asked.choices.empty()) {
    job.too_small_at = workers_.changes();
    return jobs_.SetWaitReason(
        job,
        absl::StrCat("waits for more workers: the job cannot be cut for ",
                     idle),
        actions);
  }
  jobs_.SetWaitReason(job, "is being planned", actions);
  AskToCompile(job, std::move(asked), actions);
}

void Cluster::AskToCompile(Job& job, Compilation asked, Actions& actions) {
  asked.changes = workers_.changes();
  job.compilation = asked.number = ++last_compilation_;
  actions.push_back(CompileJob{
      job.id, std::make_shared<const Compilation>(std::move(asked))});
}

}  // namespace troupe
