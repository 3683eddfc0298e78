#include "tests/scheduler/cluster/harness.h"

#include "proto/base/status.h"
#include "scheduler/cluster/hand_out.h"

namespace troupe {

absl::StatusOr<JobId> Harness::TrySubmit(const JobSpec& spec) {
  ASSIGN_OR_RETURN(const Compilation compilation, cluster.Consider(spec));
  CompileOutcome outcome;
  if (!compilation.choices.empty()) {
    outcome = CompileFirstFit(compiler, compilation);
    if (!outcome.fits()) return outcome.refusal;
  }
  auto id = cluster.Submit(spec, outcome, now, actions);
  Compile();
  return id;
}

void Harness::Compile() {
  while (answered_actions < actions.size()) {
    // A copy: an outcome adds actions.
    const Action action = actions[answered_actions++];
    const auto* job = std::get_if<CompileJob>(&action);
    if (job != nullptr && !by_hand) Compiled(*job);
    const auto* send = std::get_if<SendWhenStored>(&action);
    if (send != nullptr && !stored_by_hand) actions.push_back(send->send);
    const auto* start = std::get_if<AwaitStored>(&action);
    if (start != nullptr && !stored_by_hand) Stored(*start);
  }
}

void Harness::Compiled(const CompileJob& asked) {
  cluster.Compiled(asked.job, *asked.compilation,
                   CompileFirstFit(compiler, *asked.compilation), now, actions);
  Compile();
}

void Harness::EndsTooLate(const CompileJob& asked) {
  CompileOutcome ended;
  ended.refusal = absl::DeadlineExceededError("planning took longer than 10m");
  ended.changes = asked.compilation->changes;
  cluster.Compiled(asked.job, *asked.compilation, ended, now, actions);
  Compile();
}

void Harness::Stored(const AwaitStored& start, const absl::Status& stored) {
  cluster.Stored(start, stored, now, actions);
}

void Harness::Heartbeat(WorkerId from) {
  WorkerMessage message;
  message.mutable_heartbeat()->set_memory_bytes(5);
  const WorkerStatus& status = worker(from);
  if (status.job() != 0) {
    *message.mutable_heartbeat()->mutable_progress()->mutable_ref() =
        Ref(JobId(status.job()), status.rank());
  }
  Send(from, message);
}

void Harness::Step(JobId id, int rank, WorkerId from, int64_t step) {
  WorkerMessage message;
  *message.mutable_step()->mutable_ref() = Ref(id, rank);
  StepRecord* record = message.mutable_step()->mutable_record();
  record->set_step(step);
  record->set_loss(1.0 / step);
  record->set_step_seconds(0.1 * (rank + 1));
  record->set_memory_bytes(100 * (rank + 1));
  Send(from, message);
}

void Harness::Ended(JobId id, int rank, WorkerId from, const End& end) {
  WorkerMessage message;
  RankEnded* ended = message.mutable_ended();
  *ended->mutable_ref() = Ref(id, rank);
  ended->set_ok(end.ok);
  ended->set_error(end.error);
  ended->set_step(end.step);
  ended->set_stopped(end.stopped);
  ended->set_local_cause(end.of_machine);
  if (end.missing_rank >= 0) ended->set_missing_rank(end.missing_rank);
  Send(from, message);
}

std::vector<SchedulerMessage> Harness::Sent(WorkerId to) const {
  std::vector<SchedulerMessage> sent;
  for (const Action& action : actions) {
    const auto* send = std::get_if<SendToWorker>(&action);
    if (send != nullptr && send->worker == to) {
      sent.push_back(Completed(*send, compiler));
    }
  }
  return sent;
}

}  // namespace troupe
