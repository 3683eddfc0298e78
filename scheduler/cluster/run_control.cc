#include "scheduler/cluster/run_control.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/one_line.h"
#include "proto/plan/last_step.h"
#include "proto/plan/machine_pace.h"
#include "proto/plan/mesh.h"
#include "proto/plan/ways.h"
#include "scheduler/cluster/effects.h"
#include "scheduler/cluster/policy/goes_on.h"
#include "scheduler/cluster/run_words.h"
#include "scheduler/cluster/step_gather.h"
#include "scheduler/cluster/wait_reason.h"

namespace troupe {
namespace {

const RankRef* RefIn(const WorkerMessage& message) {
  switch (message.message_case()) {
    case WorkerMessage::kHeartbeat:
      return &message.heartbeat().progress().ref();
    case WorkerMessage::kRankReady:
      return &message.rank_ready().ref();
    case WorkerMessage::kStep:
      return &message.step().ref();
    case WorkerMessage::kShard:
      return &message.shard().ref();
    case WorkerMessage::kUnwritten:
      return &message.unwritten().ref();
    case WorkerMessage::kCommitted:
      return &message.committed().ref();
    case WorkerMessage::kEnded:
      return &message.ended().ref();
    case WorkerMessage::kNotice:
      return &message.notice().ref();
    case WorkerMessage::kStoreSet:
      return &message.store_set().ref();
    case WorkerMessage::kStoreGet:
      return &message.store_get().ref();
    default:
      return nullptr;
  }
}

// What changes the bits of a job that goes on, and is seen nowhere else.
std::string OtherWaysText(const Job& job) {
  if (job.plan_before == nullptr ||
      job.plan_before->mesh().SerializeAsString() !=
          job.plan->mesh().SerializeAsString() ||
      HaveSameWays(*job.plan_before, *job.plan)) {
    return "";
  }
  return "; sums cross these hosts in other steps than before, so that their "
         "bits differ from here";
}

void AddWarnings(const RankReady& ready, const Limits& limits,
                 std::vector<std::string>& said) {
  for (const std::string& warning : ready.warnings()) {
    if (static_cast<int>(said.size()) >= limits.warnings_max) break;
    std::string line = OneLine(warning, limits.reason_bytes_max);
    if (std::find(said.begin(), said.end(), line) != said.end()) continue;
    said.push_back(std::move(line));
  }
}

}  // namespace

std::string RunControl::ResumeOf(const Job& job) {
  const auto& checkpoints = job.status.checkpoints();
  return checkpoints.empty() ? job.plan->job().checkpoint().resume()
                             : checkpoints.rbegin()->path();
}

void RunControl::Start(Job& job, const CompiledJob& compiled,
                       const std::vector<const Worker*>& workers,
                       absl::Time now, Actions& actions) {
  const Plan& outline = *compiled.outline;
  job.moved = false;
  job.plan = compiled.outline;
  jobs_.SetPredicted(job, std::make_shared<const Timeline>(compiled.predicted));
  BeginRun(job, PhaseEvent::kPlaced, outline, now);
  job.run->tries_again = std::exchange(job.tries_again, false);
  job.status.set_fingerprint(outline.fingerprint());
  job.status.set_predicted_step_seconds(outline.prediction().step_seconds());
  job.status.set_steps_total(outline.job().training().steps());
  job.run->steps.StartAfter(job.status.steps_done());
  Seat(job, workers, now);
  jobs_.SetState(job, STARTING,
                 absl::StrCat("on ", NameList(workers), OtherWaysText(job)),
                 now, actions);
  job.run->handed = MakeHandOut(job, compiled);
  Perform(job, "", actions);
}

void RunControl::StoreStart(Job& job, Actions& actions) {
  if (job.plan->job().has_recovery()) {
    actions.push_back(PersistHandOut{job.id, job.attempt, job.run->handed});
  }
  AskTheStore(job, actions);
}

void RunControl::AskTheStore(Job& job, Actions& actions) {
  AskedOf(job.run->phase)->number = ++job.run->store_questions;
  AwaitTheStore(job, actions);
}

bool RunControl::IsOpen(const Job& job, const AwaitStored& asked) {
  if (job.run == nullptr || job.attempt != asked.attempt) return false;
  const StoreQuestion* const open = AskedOf(job.run->phase);
  return open != nullptr && open->number == asked.question;
}

void RunControl::BeginRun(Job& job, PhaseEvent event, const Plan& outline,
                          absl::Time now) {
  ++job.attempt;
  job.compilation = 0;  // what was asked of the one before is not used
  job.status.set_attempt(job.attempt);
  jobs_.BeginRun(
      job, std::make_unique<Run>(MeshSize(outline.mesh()), outline, limits_),
      event, phase::Storing{});
  job.run->attempt = job.attempt;
  job.run->started = now;
  job.run->progress = now;
  job.run->outside_step = now;
}

bool RunControl::AwaitsStore(const Job& job) {
  return job.run != nullptr && job.run->is<phase::Storing>();
}

void RunControl::NotStored(Job& job, const std::string& why, absl::Time now,
                           Actions& actions) {
  CHECK(AwaitsStore(job)) << "job " << job.id;
  if (job.status.state() != RECOVERING) {
    return Withdraw(job, why, now, actions);
  }
  // Its ranks' time to start has not begun.
  job.run->started = job.run->in<phase::Storing>()->asked.again = now;
  jobs_.SetWaitReason(job, why, actions);
}

void RunControl::Withdraw(Job& job, const std::string& why, absl::Time now,
                          Actions& actions) {
  BackToQueue(job, PhaseEvent::kWithdrawn, why, now, actions);
}

void RunControl::BackToQueue(Job& job, PhaseEvent event, const std::string& why,
                             absl::Time now, Actions& actions) {
  jobs_.Enter(job, event);
  Perform(job, absl::StrCat("the job begins anew; it ", why), actions);
  if (job.run != nullptr) jobs_.EndRun(job);
  job.queued_since = now;
  job.status.set_intent(INTENT_RUN);
  job.compilation = 0;
  if (job.plan != nullptr && job.status.steps_done() > 0) {
    job.plan_before = job.plan;
  }
  job.plan = nullptr;
  jobs_.SetPredicted(job, nullptr);
  job.status.clear_workers();
  job.status.clear_fingerprint();
  job.status.clear_predicted_step_seconds();
  job.status.set_steps_total(job.spec.training().steps());
  jobs_.SetState(job, QUEUED, why, now, actions);
}

void RunControl::Seat(Job& job, const std::vector<const Worker*>& workers,
                      absl::Time now) {
  for (size_t rank = 0; rank < workers.size(); ++rank) {
    RankSeat& seat = job.run->ranks[rank];
    seat.worker = workers[rank]->id;
    seat.worker_name = workers[rank]->name();
    seat.machine = workers[rank]->status.description();
    seat.heard = now;
    job.run->reports[rank] = {.worker_name = seat.worker_name, .heard = now};
    job.status.add_workers(seat.worker_name);
    workers_.Seat(seat.worker, job.id, static_cast<int>(rank));
  }
}

std::shared_ptr<const troupe::HandOut> RunControl::MakeHandOut(
    const Job& job, const CompiledJob& compiled) const {
  auto common = std::make_shared<troupe::HandOut>();
  common->plan = compiled.plan;
  common->loads_data = compiled.loads_data;
  for (const RankSeat& seat : job.run->ranks) {
    common->machines.push_back(seat.machine);
  }
  Assignment& assignment = common->assignment;
  *assignment.mutable_worker_names() = job.status.workers();
  assignment.set_resume(ResumeOf(job));
  assignment.set_ran_before(job.status.started_unix_ms() != 0);
  assignment.set_collective_seconds_max(
      std::max(absl::ToDoubleSeconds(limits_.collective_min),
               limits_.hang_steps * job.plan->prediction().step_seconds()));
  return common;
}

void RunControl::HandOut(Job& job, absl::Time now, Actions& actions) {
  CHECK(AwaitsStore(job)) << "job " << job.id;
  const std::string begins = BeginsOf(job.run->phase);
  jobs_.Enter(job, PhaseEvent::kStored, phase::Starting{.begins = begins});
  job.run->started = now;
  if (job.status.state() == RECOVERING) {  // and waits for the store no more
    jobs_.SetWaitReason(job, begins, actions);
  }
  Perform(job, "", actions);
}

Job* RunControl::Seated(WorkerId worker, const RankRef& ref) {
  Job* job = jobs_.Find(JobId(ref.job()));
  // Until it is stored that the attempt begins, nobody has heard of it.
  if (job == nullptr || job->run == nullptr || AwaitsStore(*job)) {
    return nullptr;
  }
  const Run& run = *job->run;
  if (ref.attempt() != run.attempt || ref.rank() < 0 ||
      ref.rank() >= static_cast<int>(run.ranks.size())) {
    return nullptr;
  }
  const RankSeat& seat = run.ranks[ref.rank()];
  return seat.worker == worker && seat.live() ? job : nullptr;
}

void RunControl::HandleMessage(WorkerId from, const WorkerMessage& message,
                               absl::Time now, Actions& actions) {
  if (message.has_leaving()) {
    return Leave(from, message.leaving(), now, actions);
  }
  const RankRef* ref = RefIn(message);
  Job* job = ref == nullptr ? nullptr : Seated(from, *ref);
  if (job == nullptr) return;
  switch (message.message_case()) {
    case WorkerMessage::kHeartbeat:
      return late_.Hear(*job, message.heartbeat().progress(), now);
    case WorkerMessage::kRankReady:
      return Ready(*job, message.rank_ready(), now, actions);
    case WorkerMessage::kStep:
      return Step(*job, message.step(), now, actions);
    case WorkerMessage::kShard:
      return Shard(*job, message.shard(), now, actions);
    case WorkerMessage::kUnwritten:
      return Unwritten(*job, message.unwritten(), now, actions);
    case WorkerMessage::kCommitted:
      return Committed(*job, message.committed(), now, actions);
    case WorkerMessage::kEnded:
      return Ended(*job, message.ended(), now, actions);
    case WorkerMessage::kNotice:
      return Notice(*job, message.notice(), now, actions);
    case WorkerMessage::kStoreSet:
      return Set(*job, message.store_set(), now, actions);
    case WorkerMessage::kStoreGet:
      return Get(*job, message.store_get(), now, actions);
    default:
      return;
  }
}

void RunControl::Ready(Job& job, const RankReady& ready, absl::Time now,
                       Actions& actions) {
  RankSeat& seat = job.run->ranks[ready.ref().rank()];
  if (seat.ready()) return;
  seat.state = RankSeat::kRunning;
  seat.first_step = std::max<int64_t>(1, ready.first_step());
  seat.step = seat.first_step - 1;
  const int rank = ready.ref().rank();
  job.run->GotOn(rank, now);
  const int other = job.run->ranks.OfAnotherStart(rank);
  if (other >= 0 && !job.run->stopping()) {
    const RankSeat& of_other = job.run->ranks[other];
    return Fail(job, Blame::kRank,
                absl::StrCat(seat.Name(rank), " begins with step ",
                             seat.first_step, ", and ", of_other.Name(other),
                             " with step ", of_other.first_step),
                now, actions);
  }
  if (auto* const said = WarningsOf(job.run->phase)) {
    AddWarnings(ready, limits_, *said);
  }
  TrainIfAllReady(job, now, actions);
}

void RunControl::Notice(Job& job, const RankNotice& notice, absl::Time now,
                        Actions& actions) {
  Run& run = *job.run;
  if (run.notices >= limits_.notices_max) return;
  const int rank = notice.ref().rank();
  const bool is_last = ++run.notices == limits_.notices_max;
  jobs_.AddEvent(
      job,
      absl::StrCat(run.ranks[rank].Name(rank), ": ", notice.text(),
                   is_last ? "; no more notices of this attempt are told" : ""),
      now, actions);
}

void RunControl::TrainIfAllReady(Job& job, absl::Time now, Actions& actions) {
  Run& run = *job.run;
  if (!run.is<phase::Starting>()) return;
  const int64_t first_step = run.ranks.FirstStep();
  // Others may have had so little to do that they have ended. Of one that the
  // scheduler before this one heard of, only that is known.
  for (RankSeat& seat : run.ranks) {
    if (seat.succeeded && !seat.taken() && !seat.ready()) {
      seat.first_step = first_step;
    }
  }
  if (!run.ranks.all_ready()) return;
  const bool recovers = job.status.state() == RECOVERING;
  // One that ran before may have done more than it goes on from.
  const int64_t done = first_step - 1;
  job.status.set_steps_done(std::max(job.status.steps_done(), done));
  const std::vector<std::string> warnings =
      std::move(run.in<phase::Starting>()->warnings);
  jobs_.Enter(job, PhaseEvent::kAllReady, phase::Training{});
  jobs_.SetState(job, RUNNING, "", now, actions);
  blame_.AllReady(job, now, actions);
  for (const std::string& warning : warnings) {
    jobs_.AddEvent(job, warning, now, actions);
  }
  if (recovers) {
    SayRecovered(job, now, actions);
  } else if (job.stands_since != absl::InfinitePast()) {
    SayMoved(job, now, actions);
  } else {
    if (job.status.steps_done() > 0) {
      jobs_.AddEvent(job,
                     absl::StrCat("resumed after step ", done, RunAgain(job)),
                     now, actions);
    }
    GoOn(job, now, actions);
  }
}

void RunControl::Step(Job& job, const StepReport& report, absl::Time now,
                      Actions& actions) {
  RankSeat& seat = job.run->ranks[report.ref().rank()];
  seat.step = std::max(seat.step, report.record().step());
  job.run->GotOn(report.ref().rank(), now);
  late_.HearStep(job, report, now);
  for (GatheredStep& step : job.run->steps.Add(report)) {
    job.run->deadline.Add(absl::Seconds(step.record.step_seconds()));
    if (const auto pace = PaceOf(*job.run); pace.has_value()) {
      *step.record.mutable_machine() = *pace;
    }
    CheckAgreement(job, step, now, actions);
    AddGathered(job, std::move(step), actions);
  }
  StoreEarlyCommits(job, job.run->steps.last(), now, actions);
}

void RunControl::AddGathered(Job& job, GatheredStep step, Actions& actions) {
  if (step.timeline.has_value()) jobs_.AddTrace(job, *std::move(step.timeline));
  if (step.experts.has_value()) job.experts.Add(*std::move(step.experts));
  jobs_.AddStep(job, step.record, actions);
}

absl::optional<MachinePace> RunControl::PaceOf(const Run& run) const {
  std::vector<const WorkerDescription*> machines;
  for (const RankSeat& seat : run.ranks) {
    const Worker* worker = workers_.Find(seat.worker);
    if (worker != nullptr) machines.push_back(&worker->status.description());
  }
  return troupe::PaceOf(machines);
}

void RunControl::Committed(Job& job, const CheckpointCommitted& committed,
                           absl::Time now, Actions& actions) {
  Run& run = *job.run;
  const int64_t step = committed.checkpoint().step();
  if (run.checkpoints.IsCommitted(step)) {
    return SendDone(job, committed.ref().rank(), step, actions);
  }
  run.GotOn(committed.ref().rank(), now);
  CheckpointRecord checkpoint = committed.checkpoint();
  checkpoint.set_attempt(run.attempt);
  run.early_commits[step] = std::move(checkpoint);
  if (!AwaitsSteps(job, now)) return StoreEarlyCommits(job, now, actions);
  StoreEarlyCommits(job, run.steps.last(), now, actions);
}

void RunControl::Ended(Job& job, const RankEnded& ended, absl::Time now,
                       Actions& actions) {
  const int rank = ended.ref().rank();
  RankSeat& seat = job.run->ranks[rank];
  job.run->GotOn(rank, now);
  seat.kept = {ended.kept().begin(), ended.kept().end()};
  seat.kept_by_attempt = job.run->attempt;
  seat.succeeded = ended.ok();
  const bool of_machine =
      !ended.ok() && !ended.stopped() && ended.local_cause();
  if (of_machine) blame_.Failed(job, seat, ended.error(), now, actions);
  if (!of_machine && seat.ready()) workers_.DidWell(seat.worker_name);
  // It stays for the next attempt, where there may be one that needs it, unless
  // what it keeps may be wrong. Whether a machine that fails is needed is known
  // when all have said what they keep.
  seat.machine_fails = of_machine;
  if (ended.stopped()) seat.stopped_for = ended.error();
  if (MayRecover(job) && !seat.wrong) {
    seat.state = RankSeat::kHeld;
  } else {
    Free(job, rank, actions);
  }
  SayEnded(job, ended, actions);
  if (StartWasCut(job, ended)) {
    return BeginAnew(job,
                     absl::StrCat("the scheduler restarted, and ",
                                  seat.Name(rank), " ended: ", ended.error()),
                     now, actions);
  }
  if (ended.stopped() && !ended.ok() && !job.run->stopping()) {
    // By a scheduler that died before it could write why: others may know.
    Fail(job, Blame::kMissingPeer,
         absl::StrCat(seat.Name(rank), " was stopped: ", ended.error()), now,
         actions);
  } else if (!ended.ok() && !ended.stopped()) {
    const Blame blame = ended.has_missing_rank() ? Blame::kMissingPeer
                        : of_machine             ? Blame::kMachine
                                                 : Blame::kRank;
    // A rank that was running says the step itself.
    const bool says_step = absl::StartsWith(ended.error(), "step ");
    Fail(job, blame,
         absl::StrCat(seat.Name(rank), " failed in ",
                      says_step ? "" : absl::StrCat(Place(job), ": "),
                      ended.error()),
         now, actions);
  } else if (ended.ok() && !seat.ready()) {
    Fail(job, Blame::kRank,
         absl::StrCat(seat.Name(rank), " ended before it was ready"), now,
         actions);
  } else if (!job.run->stopping() &&
             ended.step() < LastStep(job.plan->job().training())) {
    Fail(job, Blame::kRank,
         absl::StrCat(seat.Name(rank), " stopped after step ", ended.step(),
                      " of ", job.status.steps_total()),
         now, actions);
  }
  FinishIfLetGo(job, now, actions);
}

void RunControl::Set(Job& job, const StoreSet& set, absl::Time now,
                     Actions& actions) {
  const auto waited = job.run->rendezvous.Set(set.key(), set.value());
  if (!waited.ok()) {
    return Fail(job, Blame::kRank, std::string(waited.status().message()), now,
                actions);
  }
  for (const int rank : *waited) {
    SendValue(job, rank, set.key(), set.value(), actions);
  }
}

void RunControl::Get(Job& job, const StoreGet& get, absl::Time now,
                     Actions& actions) {
  const int rank = get.ref().rank();
  const auto found = job.run->rendezvous.Get(rank, get.key());
  if (!found.ok()) {
    return Fail(job, Blame::kRank, std::string(found.status().message()), now,
                actions);
  }
  if (*found != nullptr) SendValue(job, rank, get.key(), **found, actions);
}

}  // namespace troupe
