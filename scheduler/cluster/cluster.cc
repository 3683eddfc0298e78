#include "scheduler/cluster/cluster.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/one_line.h"
#include "proto/base/status.h"
#include "proto/plan/ranks_needed.h"
#include "proto/plan/recovery_notes.h"
#include "scheduler/cluster/client_share.h"
#include "scheduler/cluster/effects.h"
#include "scheduler/cluster/place_ranks.h"
#include "scheduler/cluster/run.h"
#include "scheduler/cluster/wait_reason.h"

namespace troupe {

Cluster::Cluster(const Limits& limits, const JobCompiler& compiler,
                 NewId new_run_id)
    : limits_(limits),
      compiler_(compiler),
      store_(limits.store_retry),
      workers_(limits),
      jobs_(limits, std::move(new_run_id)),
      runs_(limits, workers_, jobs_),
      queue_(limits, compiler, store_, workers_, jobs_, runs_),
      generations_(limits, compiler, workers_),
      links_(limits, workers_),
      file_checks_(limits, workers_) {}

void Cluster::Restore(std::vector<StoredJob> jobs, absl::Time now,
                      Actions& actions) {
  queue_.WorkersMoved(now);
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
    runs_.adopt().Resume(*job, std::move(handed[id]), now, actions);
  }
  queue_.Schedule(now, actions);
}

absl::Status Cluster::CheckIsOurs(const Register& request) const {
  const HeldRank& held = request.held();
  if (!held.has_ref() || held.cluster_id() == id_) return absl::OkStatus();
  const auto shown = [this](const std::string& id) {
    return OneLine(id, limits_.worker_name_bytes_max);
  };
  return absl::FailedPreconditionError(absl::StrCat(
      "the worker ", shown(request.worker().name()), " holds rank ",
      held.ref().rank(), " of job ", held.ref().job(), " of ",
      held.cluster_id().empty()
          ? "a cluster that it does not name"
          : absl::StrCat("the cluster ", shown(held.cluster_id())),
      ", and this scheduler is of the cluster ", id_,
      ": it was started with another --state directory, or the worker was sent "
      "to another cluster's scheduler. Start the scheduler with the state of "
      "that cluster, and the rank is taken back; or, where that state is lost, "
      "with that id in the file cluster_id of its --state directory, and the "
      "rank is ended; or end the worker, which gives the rank up"));
}

absl::StatusOr<WorkerId> Cluster::RegisterWorker(const Register& request,
                                                 absl::Time now,
                                                 Actions& actions) {
  RETURN_IF_ERROR(CheckIsOurs(request));
  ASSIGN_OR_RETURN(const WorkerId id, workers_.Add(request, now));
  queue_.WorkersMoved(now);
  links_.Registered(*workers_.Find(id));
  SendToWorker send{id, {}};
  Registered& registered = *send.message.mutable_registered();
  registered.set_worker_id(id.value());
  registered.set_heartbeat_seconds(absl::ToDoubleSeconds(limits_.heartbeat));
  registered.set_lease_seconds(absl::ToDoubleSeconds(limits_.lease));
  registered.set_cluster_id(id_);
  actions.push_back(std::move(send));
  runs_.adopt().CameBack(*workers_.Find(id), request.held(), now, actions);
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
      // Of the rank of a measurement, a text or a job: each knows its own.
      links_.HandleMessage(from.id, message, now, actions);
      generations_.HandleMessage(from.id, message, now, actions);
      break;
    case WorkerMessage::kLeaving:
      workers_.Leave(from.id);
      break;
    case WorkerMessage::kFilesChecked:
      return file_checks_.HandleMessage(from.id, message.files_checked(),
                                        actions);
    case WorkerMessage::kLinksMeasured:
      return links_.HandleMessage(from.id, message, now, actions);
    case WorkerMessage::kCopiesSaved:
      return runs_.copies().HandleCopiesSaved(from.id, message.copies_saved(),
                                              now, actions);
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
  queue_.WorkersMoved(now);
  actions.push_back(DropWorker{id, reason});
  file_checks_.WorkerGone(id, actions);
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
  const std::vector<const Worker*> in_service = workers_.InService();
  if (static_cast<int>(in_service.size()) < needed) {
    if (LeavesParallelismOpen(spec)) {
      return absl::FailedPreconditionError(
          absl::StrCat("the job ", WaitReasons(workers_).For(needed)));
    }
    Compilation narrower =
        ElasticCompilation(compiler_.Narrower(spec, MostOfOneKind(in_service)),
                           compiler_, in_service, /*more_than=*/0);
    if (!narrower.choices.empty()) {
      narrower.spec = narrower.choices.front().spec;
      return narrower;
    }
    return absl::FailedPreconditionError(
        absl::StrCat("the job ", WaitReasons(workers_).For(needed)));
  }
  return CompilationForAll(spec, needed);
}

absl::StatusOr<Compilation> Cluster::Consider(const JobSpec& spec,
                                              const std::string& client) const {
  ASSIGN_OR_RETURN(const int needed, compiler_.RanksNeeded(spec));
  RETURN_IF_ERROR(CheckQueue(client));
  Compilation compilation = CompilationForAll(spec, needed);
  if (LeavesParallelismOpen(spec) && compilation.choices.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "parallelism: auto is chosen for the workers that are there: the job ",
        WaitReasons(workers_).For(needed),
        "; submit it when they are there, or say how it is divided"));
  }
  return compilation;
}

Compilation Cluster::CompilationForAll(const JobSpec& spec, int needed) const {
  if (LeavesParallelismOpen(spec)) {
    return OpenCompilation(spec, needed, workers_);
  }
  Compilation compilation = CompilationFor(spec, needed, workers_);
  if (!compilation.choices.empty()) {
    AddNarrower(compiler_, workers_, compilation);
  }
  return compilation;
}

absl::Status Cluster::CheckQueue(const std::string& client) const {
  const int places = limits_.jobs_queued_max;
  if (jobs_.queued() >= places) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the queue is full: ", places,
                     " jobs wait; submit again when some have started"));
  }
  if (client.empty()) return absl::OkStatus();
  const int mine = jobs_.QueuedOf(client);
  const int share = ClientShare(places, jobs_.queued() - mine);
  if (mine < share) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      mine, " jobs of ", client, " wait in the queue, its share: half of the ",
      "places that other clients leave free, of ", places,
      "; submit again when some have started, or cancel some"));
}

absl::StatusOr<JobId> Cluster::Submit(const JobSpec& asked,
                                      const CompileOutcome& considered,
                                      absl::Time now, Actions& actions,
                                      const Submitter& by) {
  // What was chosen once stays: each later planning of the job plans that.
  const bool open = LeavesParallelismOpen(asked);
  if (open && !considered.fits()) return considered.refusal;
  const JobSpec& spec = open ? considered.compiled.chosen : asked;
  ASSIGN_OR_RETURN(const int needed, compiler_.RanksNeeded(spec));
  RETURN_IF_ERROR(CheckQueue(by.client));
  absl::optional<JobSpec> chooses_again;
  if (open && asked.has_elastic()) chooses_again = asked;
  Job& job =
      jobs_.Add(spec, needed, now, actions, by, std::move(chooses_again));
  const JobId id = job.id;
  const std::string lacks = WhatRecoveryLacks(spec);
  if (!lacks.empty()) jobs_.AddEvent(job, lacks, now, actions);
  queue_.Schedule(now, actions, {.job = id, .outcome = &considered});
  return id;
}

void Cluster::Stored(const AwaitStored& asked, const absl::Status& stored,
                     absl::Time now, Actions& actions) {
  const bool again = store_.Heard(asked, stored);
  Job* const job = jobs_.Find(asked.job);
  const bool open = job != nullptr && IsOpen(*job, asked);
  if (open && AwaitsStore(*job)) {
    if (stored.ok()) {
      runs_.start().HandOut(*job, now, actions);
    } else {
      store_.Failed(now);
      runs_.start().NotStored(*job, WaitsForStore(stored), now, actions);
    }
  } else if (open && AwaitsCopiesStored(*job)) {
    if (!stored.ok()) store_.Failed(now);
    runs_.copies().CopiesStored(*job, stored, now, actions);
    queue_.Schedule(now, actions);  // it may have no worker left to set free
  }
  if (again || !stored.ok()) queue_.Schedule(now, actions);
}

void Cluster::NotStored(Job& job, absl::Time now, Actions& actions) {
  if (AwaitsStore(job)) {
    runs_.start().NotStored(job, WaitsForStore(store_.status()), now, actions);
  } else {
    runs_.copies().CopiesStored(job, store_.status(), now, actions);
    queue_.Schedule(now, actions);  // it may have no worker left to set free
  }
}

void Cluster::NoteCancel(Job& job, const std::string& client, absl::Time now,
                         Actions& actions) {
  if (client.empty() || job.cancelled) return;
  jobs_.AddEvent(job, absl::StrCat("cancelled by ", client), now, actions);
}

int64_t Cluster::CheckFiles(const JobSpec& job, absl::Time now,
                            Actions& actions) {
  // One that is planned later, for want of workers, is looked at as well.
  JobSpec rest = compiler_.Resolved(job);
  if (!jobs_.MayYetWrite(job)) return file_checks_.Start(rest, now, actions);
  // What it resumes another job is still to write; then no weights are read but
  // those.
  rest.mutable_checkpoint()->clear_resume();
  rest.mutable_model()->clear_hf();
  rest.mutable_training()->mutable_lora()->clear_adapter();
  if (!job.training().has_lora()) rest.mutable_training()->clear_lora();
  return file_checks_.Start(rest, now, actions);
}

absl::Status Cluster::Cancel(JobId id, absl::Time now, Actions& actions,
                             const std::string& client) {
  RETURN_IF_ERROR(FindJob(id).status());
  Job& job = *jobs_.Find(id);
  if (job.ended()) return absl::OkStatus();
  NoteCancel(job, client, now, actions);
  if (job.status.state() == QUEUED) {
    job.cancelled = true;
    jobs_.Enter(job, PhaseEvent::kFinished, phase::Ended{});
    jobs_.SetState(job, CANCELLED,
                   job.status.started_unix_ms() == 0
                       ? "before its start"
                       : absl::StrCat("after step ", job.status.steps_done(),
                                      NewestSaved(job.status)),
                   now, actions);
    queue_.Schedule(now, actions);
  } else {
    runs_.cancel().Cancel(job, now, actions);
    Settle(now, actions);
  }
  return absl::OkStatus();
}

absl::Status Cluster::SaveAndCancel(JobId id, absl::Time now, Actions& actions,
                                    const std::string& client) {
  RETURN_IF_ERROR(FindJob(id).status());
  Job& job = *jobs_.Find(id);
  if (!job.spec.checkpoint().has_directory()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "job ", id.value(), " has no checkpoint.directory to be saved in; it ",
        "can be cancelled without a checkpoint"));
  }
  const bool stops = job.status.state() == STOPPING;
  if (job.ended() || job.run == nullptr || (stops && !job.run->saving())) {
    return Cancel(id, now, actions, client);
  }
  NoteCancel(job, client, now, actions);
  runs_.cancel().SaveAndCancel(job, "cancelled by its user", now, actions);
  Settle(now, actions);
  return absl::OkStatus();
}

absl::StatusOr<WorkerStatus> Cluster::CordonWorker(
    const CordonWorkerRequest& request, absl::Time now, Actions& actions) {
  absl::StatusOr<WorkerStatus> worker =
      request.cordon() ? workers_.Cordon(request.name(), request.why())
                       : workers_.Uncordon(request.name());
  if (worker.ok() && !request.cordon()) {
    for (const auto& [id, job] : jobs_.all()) {
      if (job->run != nullptr) job->run->wrong_workers.erase(request.name());
      // One that is being stopped is to start elsewhere, for that it failed.
      const bool stops = job->run != nullptr && !job->run->between_attempts();
      if (!stops) job->failed_on.erase(request.name());
    }
  }
  Settle(now, actions);
  return worker;
}

absl::StatusOr<std::string> Cluster::CheckpointOf(
    const GenerateRequest& request) const {
  if (!request.checkpoint().empty()) return request.checkpoint();
  if (request.job() == 0) {
    return absl::InvalidArgumentError(
        "job: give a job's number or a checkpoint's directory");
  }
  ASSIGN_OR_RETURN(const Job* job, FindJob(JobId(request.job())));
  const std::string newest = NewestCheckpointPath(job->status);
  if (newest.empty()) {
    return absl::NotFoundError(
        absl::StrCat("job ", request.job(), " has no checkpoint"));
  }
  return newest;
}

absl::StatusOr<int64_t> Cluster::Generate(const GenerateRequest& request,
                                          absl::Time now, Actions& actions) {
  ASSIGN_OR_RETURN(const std::string checkpoint, CheckpointOf(request));
  auto text = generations_.Start(request, checkpoint, now, actions);
  Settle(now, actions);
  return text;
}

void Cluster::Drain(const std::string& why, absl::Time now, Actions& actions) {
  queue_.Drain();
  runs_.cancel().Drain(why, now, actions);
  queue_.Schedule(now, actions);
}

void Cluster::ForgivePause(absl::Time now) {
  const absl::Duration pause = now - last_tick_ - limits_.tick_max;
  last_tick_ = now;
  if (pause <= absl::ZeroDuration()) return;
  workers_.Forgive(pause, now);
  runs_.Forgive(pause, now);
  generations_.Forgive(pause, now);
  links_.Forgive(pause, now);
  file_checks_.Forgive(pause);
}

void Cluster::Settle(absl::Time now, Actions& actions) {
  for (WorkerRecord& record : workers_.TakeChangedRecords()) {
    actions.push_back(PersistWorker{std::move(record)});
  }
  bool due = !schedules_later_ && queue_.IsDue(now);
  while (due || jobs_.any_defective()) {
    queue_.Schedule(now, actions);
    due = false;
  }
  links_.Review(now, actions);
}

void Cluster::Compiled(JobId id, const Compilation& compilation,
                       const CompileOutcome& outcome, absl::Time now,
                       Actions& actions) {
  if (queue_.Compiled(id, compilation, outcome, now, actions)) {
    Settle(now, actions);
  }
}

void Cluster::LoseSilent(absl::Time now, Actions& actions) {
  std::vector<StuckWorker> lost;
  for (const WorkerId id : workers_.Expired(now)) {
    const absl::Duration silent =
        absl::Trunc(now - workers_.Find(id)->heard, absl::Milliseconds(100));
    lost.push_back(
        {id, absl::StrCat("not heard for ", absl::FormatDuration(silent))});
  }
  for (const JobId id : runs_.clock().Unstored(now)) {
    store_.IsSilent(limits_.start_max);
    NotStored(*jobs_.Find(id), now, actions);
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
}

void Cluster::Tick(absl::Time now, Actions& actions) {
  ForgivePause(now);
  if (queue_.has_left()) queue_.Schedule(now, actions);
  store_.Ask(now, actions);
  LoseSilent(now, actions);
  if (queue_.CalmFor(now) >= limits_.adopt_max) workers_.ReviewSetAside();
  runs_.places().SaveAgain(now, actions);
  if (queue_.IsCalm(now)) {
    // One that has lost all of its workers has none to set free.
    bool queued = runs_.moves().NarrowWaiting(now, actions);
    queued |= runs_.moves().GiveWay(queue_.Next(), now, actions);
    runs_.places().TryAgainWhereStartsFailed(now, actions);
    queued |= queue_.TryNextWhereItsStartFailed(now, actions);
    if (queued) queue_.Schedule(now, actions);
    queue_.AskToWiden(now, actions);
  }
  file_checks_.Tick(now, actions);
  links_.Tick(!queue_.draining() && queue_.IsCalm(now) && jobs_.queued() == 0,
              now, actions);
  Settle(now, actions);
}

absl::StatusOr<const Job*> Cluster::FindJob(JobId id) const {
  const Job* job = jobs_.Find(id);
  if (job == nullptr) {
    return absl::NotFoundError(absl::StrCat("there is no job ", id.value()));
  }
  return job;
}

}  // namespace troupe
