#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/one_line.h"
#include "scheduler/cluster/effects.h"
#include "scheduler/cluster/policy/goes_on.h"
#include "scheduler/cluster/run_control.h"
#include "scheduler/cluster/run_words.h"

namespace troupe {

// The part of RunControl for what is asked to end while it is well: a job, by
// its user, or a worker, by its host.

bool RunControl::StartsOnceMore(const Job& job) const {
  return MayBeginAgain(job) || MayStartElsewhere(job);
}

void RunControl::Cancel(Job& job, absl::Time now, Actions& actions) {
  CHECK(job.run != nullptr);
  const bool recovers = job.status.state() == RECOVERING || StartsOnceMore(job);
  if (job.ended()) return;
  if (job.run->stopping() && !job.run->saving() && !recovers) {
    return StartNoMore(job, actions);
  }
  job.cancelled = true;
  jobs_.Raise(job, INTENT_CANCEL, "");
  if (job.run->stopping()) {
    job.run->stopped()->save = SaveAtStop::kNotAsked;
    StopAgain(job, "cancelled", false, now, actions);
  } else {
    Stop(job, {}, "cancelled", now, actions);
  }
  FinishIfLetGo(job, now, actions);
}

// It fails, as it stands. Workers may come meanwhile on which it could start.
void RunControl::StartNoMore(Job& job, Actions& actions) {
  if (job.cancelled) return;  // it ends as that asked
  const bool saves = job.status.intent() == INTENT_SAVE_CANCEL;
  jobs_.Raise(job, INTENT_CANCEL, saves ? job.run->intent_why : "");
  jobs_.Save(job, actions);
}

void RunControl::SaveAndCancel(Job& job, const std::string& why, absl::Time now,
                               Actions& actions) {
  CHECK(job.run != nullptr);
  if (job.ended()) return;
  if (job.moves() && job.run->is<phase::SavingCopies>()) {
    jobs_.Raise(job, INTENT_SAVE_CANCEL, why);
    jobs_.Save(job, actions);
    if (AwaitsCopiesStored(job)) Narrow(job, now, actions);
    return;
  }
  if (job.moves()) {  // is being saved already
    job.cancelled = true;
    jobs_.Raise(job, INTENT_SAVE_CANCEL, why);
    return jobs_.SetState(
        job, STOPPING, absl::StrCat(why, ", with a checkpoint"), now, actions);
  }
  const bool recovers = job.status.state() == RECOVERING;
  if (StartsOnceMore(job)) return Cancel(job, now, actions);
  if (job.run->stopping() && !recovers) return StartNoMore(job, actions);
  if (recovers && MayMove(job)) {
    jobs_.Raise(job, INTENT_SAVE_CANCEL, why);
    // One that is not being stopped yet is stored when it is: whoever is
    // scheduler next acts on the phase.
    if (job.run->stopping()) jobs_.Save(job, actions);
    return MoveAsItIs(job, why, now, actions);
  }
  if (job.status.state() != RUNNING) return Cancel(job, now, actions);
  job.cancelled = true;
  jobs_.Raise(job, INTENT_SAVE_CANCEL, why);
  Stop(job, {.save = SaveAtStop::kAsked},
       absl::StrCat(why, ", with a checkpoint"), now, actions);
}

void RunControl::Leave(WorkerId from, const Leaving& leaving, absl::Time now,
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

void RunControl::LeaveRank(Job& job, int rank, const std::string& why,
                           absl::Time now, Actions& actions) {
  if (job.moves()) return;  // goes on without it as it is
  // Nothing is to be saved: the job has not begun, or goes on without it.
  if (job.status.state() == STARTING || job.status.state() == RECOVERING) {
    Fail(job, Blame::kWorkerLost, absl::StrCat(why, " in ", Place(job)), now,
         actions);
  } else if (job.status.state() == RUNNING && MayMove(job)) {
    SaveAndMove(job, why, now, actions);
  } else if (!job.run->stopping()) {  // else it ends anyhow
    SaveAndCancel(job, why, now, actions);
  }
}

// Its rank has ended. It is answered that it stays as long as what it keeps is
// needed.
void RunControl::LeaveKept(Job& job, int rank, const std::string& why,
                           absl::Time now, Actions& actions) {
  SendStay(job, rank, actions);
  jobs_.AddEvent(job, why, now, actions);
  if (job.run->between_attempts()) TakePlaces(job, now, actions);
}

}  // namespace troupe
