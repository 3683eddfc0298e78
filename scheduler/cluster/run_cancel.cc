#include "scheduler/cluster/run_cancel.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/one_line.h"
#include "scheduler/cluster/effects.h"
#include "scheduler/cluster/policy/goes_on.h"
#include "scheduler/cluster/policy/starts_elsewhere.h"
#include "scheduler/cluster/run_words.h"

namespace troupe {

bool RunCancel::StartsOnceMore(const Job& job) const {
  return troupe::StartsOnceMore(job, workers_, limits_.starts_max);
}

void RunCancel::Cancel(Job& job, absl::Time now, Actions& actions) {
  CHECK(job.run != nullptr);
  const bool recovers = job.status.state() == RECOVERING || StartsOnceMore(job);
  if (job.ended()) return;
  if (job.run->stopping() && !job.run->saving() && !recovers) {
    return StartNoMore(job, actions);
  }
  job.cancelled = true;
  jobs_.Raise(job, intent::Cancel{});
  if (job.run->stopping()) {
    job.run->stopped()->save = SaveAtStop::kNotAsked;
    verdicts_.StopAgain(job, "cancelled", false, now, actions);
  } else {
    verdicts_.Stop(job, {}, "cancelled", now, actions);
  }
  verdicts_.FinishIfLetGo(job, now, actions);
}

// It fails, as it stands. Workers may come meanwhile on which it could start.
void RunCancel::StartNoMore(Job& job, Actions& actions) {
  if (job.cancelled) return;  // it ends as that asked
  const bool saves = job.status.intent() == INTENT_SAVE_CANCEL;
  jobs_.Raise(job, intent::Cancel{saves ? WhyOf(job.run->intent) : ""});
  jobs_.Save(job, actions);
}

void RunCancel::SaveAndCancel(Job& job, const std::string& why, absl::Time now,
                              Actions& actions) {
  CHECK(job.run != nullptr);
  if (job.ended()) return;
  if (job.moves() && job.run->is<phase::SavingCopies>()) {
    jobs_.Raise(job, intent::SaveCancel{why});
    jobs_.Save(job, actions);
    if (AwaitsCopiesStored(job)) moves_.Narrow(job, now, actions);
    return;
  }
  if (job.moves()) {  // is being saved already
    job.cancelled = true;
    jobs_.Raise(job, intent::SaveCancel{why});
    return jobs_.SetState(
        job, STOPPING, absl::StrCat(why, ", with a checkpoint"), now, actions);
  }
  const bool recovers = job.status.state() == RECOVERING;
  if (StartsOnceMore(job)) return Cancel(job, now, actions);
  if (job.run->stopping() && !recovers) return StartNoMore(job, actions);
  if (recovers && MayMove(job)) {
    jobs_.Raise(job, intent::SaveCancel{why});
    // One that is not being stopped yet is stored when it is: the next
    // scheduler acts on the phase.
    if (job.run->stopping()) jobs_.Save(job, actions);
    return moves_.MoveAsItIs(job, why, now, actions);
  }
  if (job.status.state() != RUNNING) return Cancel(job, now, actions);
  job.cancelled = true;
  jobs_.Raise(job, intent::SaveCancel{why});
  verdicts_.Stop(job, {.save = SaveAtStop::kAsked},
                 absl::StrCat(why, ", with a checkpoint"), now, actions);
}

void RunCancel::Drain(const std::string& why, absl::Time now,
                      Actions& actions) {
  moves_.Drain();
  for (const auto& [id, job] : jobs_.all()) {
    if (job->run == nullptr) continue;
    if (MayMove(*job)) {
      moves_.MoveAsItIs(*job, why, now, actions);
    } else {
      SaveAndCancel(*job, why, now, actions);
    }
  }
}

void RunCancel::Leave(WorkerId from, const Leaving& leaving, absl::Time now,
                      Actions& actions) {
  if (!leaving.has_ref()) return;  // there is nothing to save
  const std::string why =
      absl::StrCat(" was asked to end (",
                   OneLine(leaving.reason(), limits_.reason_bytes_max), ")");
  // What it has heard of may be an earlier attempt than that in which it has a
  // place, or one of another job: that has lost it, and ends what it begins.
  const WorkerStatus& status = workers_.Find(from)->status;
  Job* const job = jobs_.Find(JobId(status.job()));
  if (job == nullptr || job->id != JobId(leaving.ref().job())) {
    SendGiveUpKept(from, leaving.ref(), "nobody goes on from what it keeps",
                   actions);
  }
  if (job == nullptr) return;
  CHECK(job->run != nullptr) << "job " << job->id;
  const int rank = status.rank();
  const RankSeat& seat = job->run->ranks[rank];
  CHECK(seat.worker == from && seat.taken()) << "job " << job->id;
  return seat.live()
             ? LeaveRank(*job, rank, seat.Name(rank) + why, now, actions)
             : LeaveKept(*job, rank, seat.Name(rank) + why, now, actions);
}

void RunCancel::LeaveRank(Job& job, int rank, const std::string& why,
                          absl::Time now, Actions& actions) {
  if (job.moves()) return;  // goes on without it as it is
  // Nothing is to be saved: the job has not begun, or goes on without it.
  if (job.status.state() == STARTING || job.status.state() == RECOVERING) {
    verdicts_.Fail(job, Blame::kWorkerLost,
                   absl::StrCat(why, " in ", Place(job)), now, actions);
  } else if (job.status.state() == RUNNING && MayMove(job)) {
    moves_.SaveAndMove(job, why, now, actions);
  } else if (!job.run->stopping()) {  // else it ends anyhow
    SaveAndCancel(job, why, now, actions);
  }
}

// Its rank has ended. It is answered that it stays as long as what it keeps is
// needed.
void RunCancel::LeaveKept(Job& job, int rank, const std::string& why,
                          absl::Time now, Actions& actions) {
  SendStay(job, rank, actions);
  jobs_.AddEvent(job, why, now, actions);
  if (job.run->between_attempts()) places_.TakePlaces(job, now, actions);
}

}  // namespace troupe
