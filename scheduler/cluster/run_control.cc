#include "scheduler/cluster/run_control.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/plan/last_step.h"
#include "scheduler/cluster/effects.h"
#include "scheduler/cluster/enter_phase.h"
#include "scheduler/cluster/policy/goes_on.h"
#include "scheduler/cluster/run_words.h"

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

}  // namespace

RunControl::RunControl(const Limits& limits, WorkerTable& workers,
                       JobTable& jobs)
    : limits_(limits),
      workers_(workers),
      jobs_(jobs),
      late_(limits, jobs),
      blame_(limits, workers, jobs),
      effects_(limits, workers),
      start_(limits, workers, jobs, effects_),
      ready_(limits, jobs, blame_, *this),
      steps_(limits, workers, jobs, late_, *this),
      shards_(limits, jobs, *this),
      copies_(limits, workers, jobs, effects_, steps_, moves_, places_),
      moves_(limits, workers, jobs, effects_, start_, steps_, copies_, *this),
      places_(limits, workers, jobs, effects_, start_, steps_, moves_, *this),
      cancel_(limits, workers, jobs, moves_, places_, *this),
      adopt_(limits, workers, jobs, start_, steps_, ready_, cancel_, *this),
      clock_(limits, workers, jobs, late_, copies_, *this) {}

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
    return cancel_.Leave(from, message.leaving(), now, actions);
  }
  const RankRef* ref = RefIn(message);
  Job* job = ref == nullptr ? nullptr : Seated(from, *ref);
  if (job == nullptr) return;
  switch (message.message_case()) {
    case WorkerMessage::kHeartbeat:
      return late_.Hear(*job, message.heartbeat().progress(), now);
    case WorkerMessage::kRankReady:
      return ready_.Ready(*job, message.rank_ready(), now, actions);
    case WorkerMessage::kStep:
      return steps_.Step(*job, message.step(), now, actions);
    case WorkerMessage::kShard:
      return shards_.Shard(*job, message.shard(), now, actions);
    case WorkerMessage::kUnwritten:
      return shards_.Unwritten(*job, message.unwritten(), now, actions);
    case WorkerMessage::kCommitted:
      return steps_.Committed(*job, message.committed(), now, actions);
    case WorkerMessage::kEnded:
      return Ended(*job, message.ended(), now, actions);
    case WorkerMessage::kNotice:
      return ready_.Notice(*job, message.notice(), now, actions);
    case WorkerMessage::kStoreSet:
      return ready_.Set(*job, message.store_set(), now, actions);
    case WorkerMessage::kStoreGet:
      return ready_.Get(*job, message.store_get(), now, actions);
    default:
      return;
  }
}

void RunControl::WorkerGone(JobId id, WorkerId worker, const std::string& how,
                            const std::string& reason, absl::Time now,
                            Actions& actions) {
  Job* job = jobs_.Find(id);
  CHECK(job != nullptr && job->run != nullptr) << "job " << id;
  auto& ranks = job->run->ranks;
  const auto seat = std::find_if(
      ranks.begin(), ranks.end(),
      [worker](const RankSeat& s) { return s.worker == worker && s.taken(); });
  CHECK(seat != ranks.end()) << "worker " << worker << " in job " << id;
  // What it did to the end needs it no more, unless the others fail; nor does
  // what was saved, unless that are its copies.
  const int rank = static_cast<int>(seat - ranks.begin());
  const bool saves = job->run->SavesCopiesWith(rank);
  if (saves) SaveNoCopies(*job, jobs_);
  const bool done =
      seat->succeeded || (job->moves() && !seat->live() && !saves);
  seat->Lose();
  steps_.StoreEarlyCommits(*job, now, actions);
  if (!done) {
    if (how != "left") blame_.Failed(*job, *seat, reason, now, actions);
    Fail(*job, Blame::kWorkerLost,
         absl::StrCat(seat->Name(rank), " ", how, " in ", Place(*job), ": ",
                      reason, late_.WaitersFor(*job, rank, now)),
         now, actions);
  } else if (seat->succeeded) {
    ready_.TrainIfAllReady(*job, now, actions);
  }
  FinishIfLetGo(*job, now, actions);
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
    effects_.Free(job, rank, actions);
  }
  SayEnded(job, ended, actions);
  if (RunAdopt::StartWasCut(job, ended)) {
    return adopt_.BeginAnew(
        job,
        absl::StrCat("the scheduler restarted, and ", seat.Name(rank),
                     " ended: ", ended.error()),
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

// What a worker says of a rank that stays for the next attempt it says again to
// the next scheduler, with the steps that others have not reported yet: so that
// is not acknowledged before the end of the run.
void RunControl::SayEnded(Job& job, const RankEnded& ended, Actions& actions) {
  const int rank = ended.ref().rank();
  const bool stays = job.run->ranks[rank].state == RankSeat::kHeld;
  if (!job.ended() && (!stays || ended.ok())) {
    job.run->ranks[rank].end_to_store = ended.step();
    jobs_.Save(job, actions);
  }
  if (!stays) SendEndStored(job, rank, actions);
}

void RunControl::Forgive(absl::Duration time, absl::Time now) {
  for (const auto& [id, job] : jobs_.all()) {
    if (job->run != nullptr) job->run->Forgive(time, now);
  }
}

std::vector<StuckWorker> RunControl::Tick(absl::Time now, Actions& actions) {
  std::vector<StuckWorker> stuck;
  for (const auto& [id, job] : jobs_.all()) {
    if (job->run == nullptr) continue;
    adopt_.CheckAwaited(*job, now, actions);
    if (job->run != nullptr) steps_.SayStored(*job, now, actions);
    if (job->run != nullptr) clock_.CheckTime(*job, now, actions, stuck);
    if (job->run == nullptr) continue;  // that ended it
    clock_.AskTheStoreAgain(*job, now, actions);
  }
  return stuck;
}

}  // namespace troupe
