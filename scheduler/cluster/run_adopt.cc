#include "scheduler/cluster/run_adopt.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "scheduler/cluster/effects.h"
#include "scheduler/cluster/hand_out.h"
#include "scheduler/cluster/policy/goes_on.h"
#include "scheduler/cluster/rank_view.h"
#include "scheduler/cluster/run_words.h"
#include "scheduler/cluster/wait_reason.h"

namespace troupe {
namespace {

// Where what is lost can be had from.
std::string WayOut(const JobStatus& status) {
  if (status.checkpoints().empty()) return "; it had no checkpoint yet";
  return absl::StrCat("; resume from checkpoint ",
                      status.checkpoints().rbegin()->path());
}

// The last checkpoint that this attempt has committed; -1: none.
int64_t LastCommitted(const Job& job) {
  int64_t step = -1;
  for (const CheckpointRecord& checkpoint : job.status.checkpoints()) {
    if (checkpoint.attempt() == job.attempt) step = checkpoint.step();
  }
  return step;
}

// Whether the ranks of the job's attempt, as it is stored, were handed this.
bool IsOf(const Job& job, const HandOut* handed) {
  return handed != nullptr && job.plan != nullptr &&
         handed->plan->fingerprint() == job.plan->fingerprint() &&
         static_cast<int>(handed->machines.size()) == job.status.workers_size();
}

// Whether the worker has ended a rank of an attempt before this one, and has
// not heard of this one, which so has not come to a step: it goes on from the
// same copies.
bool IsFromBefore(const Job& job, const HeldRank& held) {
  return job.status.state() == RECOVERING && held.kept_size() > 0 &&
         held.ref().attempt() < job.run->attempt &&
         std::none_of(job.run->ranks.begin(), job.run->ranks.end(),
                      [](const RankSeat& seat) { return seat.ready(); });
}

// It has nothing to lose. One that has saved something was running, and died
// with its scheduler before that could be written.
bool IsInStart(const Job& job) {
  return job.status.state() == STARTING && LastCommitted(job) < 0 &&
         job.run->early_commits.empty();
}

}  // namespace

void RunAdopt::Resume(Job& job, std::shared_ptr<const HandOut> handed,
                      absl::Time now, Actions& actions) {
  CHECK(job.run == nullptr) << "job " << job.id;
  const StoredRun stored = TakeRun(job.status, job.cancelled);
  if (!IsOf(job, handed.get())) handed = nullptr;
  if (job.status.state() == RECOVERING) {
    if (job.cancelled) {
      jobs_.Enter(job, PhaseEvent::kRestoredEnded, phase::Ended{});
      return jobs_.SetState(job, CANCELLED, "while it recovered", now, actions);
    }
    if (handed == nullptr && !stored.save_why.empty()) {
      job.cancelled = true;
      jobs_.Enter(job, PhaseEvent::kRestoredEnded, phase::Ended{});
      return jobs_.SetState(
          job, CANCELLED,
          absl::StrCat(stored.save_why, " after step ", job.status.steps_done(),
                       WhereSaved(job.status)),
          now, actions);
    }
    if (handed == nullptr) {
      return start_.BackToQueue(
          job, PhaseEvent::kRestoredInQueue,
          absl::StrCat("the scheduler restarted while the job "
                       "recovered; before it, ",
                       job.status.reason()),
          now, actions);
    }
  }
  const int ranks = job.status.workers_size();
  if (ranks == 0 || job.plan == nullptr ||
      jobs_.SavesInPlaceOf(job) != nullptr) {
    jobs_.Enter(job, PhaseEvent::kRestoredEnded, phase::Ended{});
    return jobs_.SetState(
        job, FAILED,
        absl::StrCat("the scheduler restarted, and its record of who ran the "
                     "job is not whole",
                     WayOut(job.status)),
        now, actions);
  }
  jobs_.BeginRun(job, std::make_unique<Run>(ranks, *job.plan, limits_),
                 stored.stops() ? PhaseEvent::kRestoredStopping
                                : PhaseEvent::kRestoredRunning,
                 ResumePhase(stored, job.status, now));
  Run& run = *job.run;
  run.attempt = job.attempt;
  run.handed = std::move(handed);
  run.restored = run.started = run.progress = run.outside_step = now;
  SeatAwaited(job, stored, now);
  run.checkpoints.Committed(LastCommitted(job));
  jobs_.Raise(job, MakeIntent(stored.intent_now(), stored.save_why));
  SayAwaited(job, actions);
  verdicts_.FinishIfLetGo(job, now, actions);
}

void RunAdopt::SeatAwaited(Job& job, const StoredRun& stored, absl::Time now) {
  Run& run = *job.run;
  const int ranks = static_cast<int>(run.ranks.size());
  std::vector<std::string> hosts;
  for (int rank = 0; rank < ranks; ++rank) {
    RankSeat& seat = run.ranks[rank];
    seat.worker_name = job.status.workers(rank);
    seat.heard = now;
    if (run.handed != nullptr) {
      seat.machine = run.handed->machines[rank];
      hosts.push_back(seat.machine.host());
    }
    run.reports[rank] = {.worker_name = seat.worker_name, .heard = now};
  }
  if (run.handed != nullptr) {
    const std::vector<bool> checks =
        RanksThatCheckData(run.handed->loads_data, hosts);
    for (int rank = 0; rank < ranks; ++rank) {
      run.ranks[rank].checks_data = checks[rank];
    }
  }
  std::map<int, int64_t> ended;
  for (const auto& [rank, step] : stored.ended) {
    if (rank < 0 || rank >= ranks) continue;
    RankSeat& seat = run.ranks[rank];
    seat.state = MayRecover(job) ? RankSeat::kHeld : RankSeat::kEnded;
    seat.succeeded = !stored.stops();
    seat.step = step;
    seat.end_to_store = ended[rank] = step;
  }
  run.steps.Resume(job.status.steps_done(), std::move(ended));
}

std::string RunAdopt::WhyNotAdopted(const Worker& worker,
                                    const HeldRank& held) const {
  const RankRef& ref = held.ref();
  const Job* job = jobs_.Find(JobId(ref.job()));
  if (job == nullptr) return absl::StrCat("there is no job ", ref.job());
  const std::string name = absl::StrCat("job ", ref.job());
  if (job->ended()) {
    return absl::StrCat(
        name, " has ",
        absl::AsciiStrToLower(JobState_Name(job->status.state())));
  }
  if (job->run == nullptr ||
      (job->run->attempt != ref.attempt() && !IsFromBefore(*job, held))) {
    return absl::StrCat(name, " begins anew");
  }
  const auto& ranks = job->run->ranks;
  if (ref.rank() < 0 || ref.rank() >= static_cast<int>(ranks.size()) ||
      held.fingerprint() != job->plan->fingerprint() || !IsOfRun(*job, held)) {
    return absl::StrCat(name, " is another one here");
  }
  const RankSeat& seat = ranks[ref.rank()];
  if (seat.awaited() && seat.worker_name == worker.name()) return "";
  return absl::StrCat(name, " goes on without this worker, which was ",
                      "cut off from it");
}

void RunAdopt::CameBack(const Worker& worker, const HeldRank& held,
                        absl::Time now, Actions& actions) {
  const Job* adopts = nullptr;
  if (held.has_ref()) {
    const std::string why_not = WhyNotAdopted(worker, held);
    if (why_not.empty()) {
      Job& job = *jobs_.Find(JobId(held.ref().job()));
      Adopt(job, worker, held, now, actions);
      adopts = &job;
    } else {
      SendForget(worker.id, held.ref(), why_not, actions);
    }
  }
  // Of a job that went on without it after that was stored last, too.
  for (const auto& [id, job] : jobs_.all()) {
    if (job->run == nullptr || job.get() == adopts) continue;
    GiveUpAwaited(
        *job, worker.name(), "came back without its rank",
        [&, &job = job] { return WhyWithoutRank(*job, worker, held); }, now,
        actions);
  }
}

void RunAdopt::SeatAdopted(Job& job, const Worker& worker, const HeldRank& held,
                           absl::Time now) {
  const int rank = held.ref().rank();
  RankSeat& seat = job.run->ranks[rank];
  seat.worker = worker.id;
  seat.machine = worker.status.description();
  workers_.Seat(worker.id, job.id, rank);
  job.run->reports[rank].heard = now;
  job.run->GotOn(rank, now);
  if (held.ref().attempt() < job.run->attempt) {
    seat.state = RankSeat::kHeld;
    seat.kept = {held.kept().begin(), held.kept().end()};
    seat.kept_by_attempt = held.ref().attempt();
    return;
  }
  // One that has ended says that again.
  seat.state = RankSeat::kStarting;
  // In a start it says again that it is ready, for the job to begin with.
  const bool starts =
      job.status.state() == STARTING ||
      (job.status.state() == RECOVERING && !job.run->stopping());
  if (!starts && held.first_step() > 0) {
    seat.state = RankSeat::kRunning;
    seat.first_step = held.first_step();
    seat.step = std::max(held.step(), held.first_step() - 1);
  }
}

void RunAdopt::Adopt(Job& job, const Worker& worker, const HeldRank& held,
                     absl::Time now, Actions& actions) {
  Run& run = *job.run;
  const int rank = held.ref().rank();
  SeatAdopted(job, worker, held, now);
  const bool unheard = run.ranks[rank].state == RankSeat::kHeld;
  if (auto* const adopting = run.in<phase::Adopting>()) {
    adopting->unheard |= unheard;
  }
  if (phase::Stopped* const stopped = run.stopped()) {
    stopped->unheard |= unheard;
    const bool peers_gone = stopped->blame != Blame::kNone;
    SendStop(job, rank, job.status.reason(), peers_gone, actions);
  } else if (unheard) {
    verdicts_.Fail(job, Blame::kMissingPeer,
                   absl::StrCat("the scheduler restarted before ",
                                run.ranks[rank].Name(rank),
                                " had heard of attempt ", run.attempt),
                   now, actions);
  }
  if (run.ranks.awaits()) return SayAwaited(job, actions);
  EndAdoption(job, now, actions);
  int adopted = 0;
  for (const RankSeat& each : run.ranks) adopted += each.taken();
  jobs_.AddEvent(job,
                 absl::StrCat("the scheduler restarted; adopted ", adopted,
                              adopted == 1 ? " rank in " : " ranks in ",
                              SecondsWords(now - run.restored), " after step ",
                              job.status.steps_done()),
                 now, actions);
  run.started = run.outside_step = now;
  StopAsMeant(job, now, actions);
  SayAwaited(job, actions);
  verdicts_.FinishIfLetGo(job, now, actions);
}

void RunAdopt::EndAdoption(Job& job, absl::Time now, Actions& actions) {
  auto* const adopting = job.run->in<phase::Adopting>();
  if (adopting == nullptr) return;  // it was stopped
  if (job.status.state() == RUNNING) {
    jobs_.Enter(job, PhaseEvent::kBackInTraining, phase::Training(*adopting));
  } else {
    jobs_.Enter(job, PhaseEvent::kBackInStart,
                phase::Starting{.begins = std::move(adopting->begins),
                                .warnings = std::move(adopting->warnings)});
    ready_.TrainIfAllReady(job, now, actions);
  }
}

// A build before this one may have stored the intent without the stop.
void RunAdopt::StopAsMeant(Job& job, absl::Time now, Actions& actions) {
  if (job.run->stopping() || job.status.intent() != INTENT_SAVE_CANCEL) return;
  const std::string why = WhyOf(job.run->intent);
  cancel_.SaveAndCancel(job, why, now, actions);
}

// A job that is being stopped goes on saying why.
void RunAdopt::SayAwaited(Job& job, Actions& actions) {
  const Run& run = *job.run;
  if (run.stopping()) return;
  std::vector<std::string> names;
  for (const RankSeat& seat : run.ranks) {
    if (seat.awaited()) names.push_back(seat.worker_name);
  }
  const bool starts = job.status.state() == STARTING;
  std::string reason;
  if (!names.empty()) {
    reason = absl::StrCat("the scheduler restarted; waits for ",
                          NameList(std::move(names)));
  } else if (starts) {
    reason = absl::StrCat(
        "on ", NameList(std::vector<std::string>{job.status.workers().begin(),
                                                 job.status.workers().end()}));
  } else if (job.status.state() == RECOVERING) {
    reason = BeginsOf(run.phase);
  }
  jobs_.SetWaitReason(job, reason, actions);
}

void RunAdopt::CheckAwaited(Job& job, absl::Time now, Actions& actions) {
  if (now - job.run->restored <= limits_.adopt_max) return;
  steps_.StoreEarlyCommits(job, now, actions);
  GiveUpAwaited(
      job, "",
      absl::StrCat("did not come back within ",
                   absl::FormatDuration(limits_.adopt_max)),
      /*why=*/[] { return std::string(); }, now, actions);
}

void RunAdopt::GiveUpAwaited(Job& job, const std::string& worker,
                             const std::string& how,
                             absl::FunctionRef<std::string()> why,
                             absl::Time now, Actions& actions) {
  Run& run = *job.run;
  std::vector<std::string> lost;
  bool fails = false;
  for (size_t rank = 0; rank < run.ranks.size(); ++rank) {
    RankSeat& seat = run.ranks[rank];
    if (!seat.awaited()) continue;
    if (!worker.empty() && seat.worker_name != worker) continue;
    fails |= !seat.succeeded;
    seat.Lose();
    lost.push_back(seat.Name(static_cast<int>(rank)));
  }
  if (lost.empty()) return;
  const std::string reason = why();
  const std::string because = reason.empty() ? "" : absl::StrCat(": ", reason);
  steps_.StoreEarlyCommits(job, now, actions);
  workers_.GiveUpAwaited();
  const std::string what = absl::StrCat("the scheduler restarted, and ",
                                        NameList(std::move(lost)), " ", how);
  if (IsInStart(job)) {
    return BeginAnew(job, absl::StrCat(what, because), now, actions);
  }
  // One that recovers goes on saying what came first.
  if (fails && (!IsToGoOn(job) || job.moves())) {
    verdicts_.Fail(job, Blame::kWorkerLost,
                   absl::StrCat(what, " in ", Place(job), because,
                                MayRecover(job) ? "" : WayOut(job.status)),
                   now, actions);
  }
  if (!run.ranks.awaits()) {
    EndAdoption(job, now, actions);
    StopAsMeant(job, now, actions);
  }
  SayAwaited(job, actions);
  verdicts_.FinishIfLetGo(job, now, actions);
}

bool RunAdopt::StartWasCut(const Job& job, const RankEnded& ended) {
  return IsInStart(job) && job.run->restored != absl::InfinitePast() &&
         (ended.has_missing_rank() || (ended.stopped() && !ended.ok()));
}

void RunAdopt::BeginAnew(Job& job, const std::string& why, absl::Time now,
                         Actions& actions) {
  start_.BackToQueue(job, PhaseEvent::kStartCut,
                     absl::StrCat("waits again: ", why), now, actions);
}

}  // namespace troupe
