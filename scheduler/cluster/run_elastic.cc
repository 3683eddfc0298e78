#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/one_line.h"
#include "scheduler/cluster/effects.h"
#include "scheduler/cluster/policy/copies_left.h"
#include "scheduler/cluster/policy/goes_on.h"
#include "scheduler/cluster/policy/who_leaves.h"
#include "scheduler/cluster/rank_view.h"
#include "scheduler/cluster/run_control.h"
#include "scheduler/cluster/run_words.h"
#include "scheduler/cluster/wait_reason.h"

namespace troupe {
namespace {

const std::string& WhyItMoves(const Run& run) {
  const std::string& cause = run.stopped()->cause;
  return cause.empty() ? run.intent_why : cause;
}

// Who has the copy of each rank's state: itself, unless it is handed over.
std::vector<Handover> HoldersOf(const Recovery& recovery, int ranks) {
  std::vector<Handover> holders(ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    holders[rank].set_from(rank);
    holders[rank].set_to(rank);
  }
  for (const Handover& handover : recovery.handovers()) {
    holders[handover.to()] = handover;
  }
  return holders;
}

}  // namespace

// The part of RunControl that lets a job go on with fewer workers than it has
// ranks, or more (`elastic`), or without one that leaves. Plans for other
// numbers of ranks go on from what any saved, so the way from one to the next
// is a checkpoint: of the end of a step, where all ranks are there; else of the
// copies that are left. The job is queued meanwhile, and planned anew as it
// starts (cluster.cc).

void RunControl::SaveAndMove(Job& job, const std::string& why, absl::Time now,
                             Actions& actions) {
  CHECK(job.run != nullptr && !job.run->stopping()) << "job " << job.id;
  jobs_.Raise(job, INTENT_SAVE_MOVE, why);
  Stop(job, {.save = SaveAtStop::kAsked},
       absl::StrCat(why, ": the job is saved, to go on with others"), now,
       actions);
}

void RunControl::Drain(const std::string& why, absl::Time now,
                       Actions& actions) {
  draining_ = true;
  for (const auto& [id, job] : jobs_.all()) {
    if (job->run == nullptr) continue;
    if (MayMove(*job)) {
      MoveAsItIs(*job, why, now, actions);
    } else {
      SaveAndCancel(*job, why, now, actions);
    }
  }
}

void RunControl::MoveAsItIs(Job& job, const std::string& why, absl::Time now,
                            Actions& actions) {
  Run& run = *job.run;
  // In a start those that are ready save, if all are.
  if (!run.stopping()) return SaveAndMove(job, why, now, actions);
  jobs_.Raise(job, INTENT_SAVE_MOVE, why);
  if (run.is<phase::AwaitPlaces>() || AwaitsCopiesStored(job)) {
    Narrow(job, now, actions);
  }
}

bool RunControl::MovesOn(const Job& job) const {
  return (draining_ || job.moves() || job.ends_once_saved()) && MayMove(job);
}

void RunControl::Move(Job& job, const std::string& why, absl::Time now,
                      Actions& actions) {
  const bool costs_restart = job.run->CostsRestart();
  StandStill(job);
  CloseSteps(job, *job.run, -1, actions);
  const int64_t saved = NewestCheckpoint(job.status);
  if (job.ends_once_saved()) {
    const auto* const copies = job.run->in<phase::SavingCopies>();
    const bool all_there_was =
        copies != nullptr && copies->state.step() == saved;
    job.cancelled = true;
    jobs_.Enter(job, PhaseEvent::kFinished);
    jobs_.SetState(job, CANCELLED,
                   absl::StrCat(job.run->intent_why, " after step ",
                                job.status.steps_done(),
                                WhereSaved(job.status, all_there_was)),
                   now, actions);
    Perform(job, "", actions);
    jobs_.EndRun(job);
    return;
  }
  if (costs_restart) CountRestart(job);
  BackToQueue(job, PhaseEvent::kMoved,
              absl::StrCat("goes on with other workers from ",
                           saved < 0 ? "where it began, for neither copies nor "
                                       "a checkpoint are left"
                                     : absl::StrCat("step ", saved),
                           "; ", why),
              now, actions);
  job.moved = true;
}

bool RunControl::MayNarrow(const Job& job) const {
  const Run& run = *job.run;
  return job.plan->job().has_elastic() && run.is<phase::AwaitPlaces>() &&
         run.ranks.taken() + workers_.idle_count() >=
             job.plan->job().elastic().min_workers();
}

bool RunControl::IsPaused(const Job& job, absl::Time now) const {
  return now < job.moves_after && CopiesToSave(job).has_value();
}

bool RunControl::NarrowWaiting(absl::Time now, Actions& actions) {
  bool queued = false;
  for (const auto& [id, job] : jobs_.all()) {
    if (job->run != nullptr && MayNarrow(*job) && !IsPaused(*job, now)) {
      Narrow(*job, now, actions);
      queued |= job->status.state() == QUEUED;
    }
  }
  return queued;
}

void RunControl::Narrow(Job& job, absl::Time now, Actions& actions) {
  const absl::optional<Recovery> newest = CopiesToSave(job);
  if (newest.has_value()) {
    if (job.run->is<phase::SavingCopies>()) {  // of an older step
      jobs_.Enter(job, PhaseEvent::kCopiesGivenUp,
                  phase::AwaitPlaces(*job.run->between()));
    }
    return SaveCopiesOf(job, *newest, now, actions);
  }
  const bool hurries = draining_ || job.ends_once_saved();
  if (!hurries && NewestCheckpoint(job.status) >= 0 &&
      NewestCopies(*job.run).has_value()) {
    return StoreCheckpoint(job, now, actions);
  }
  Move(job, WhyItMoves(*job.run), now, actions);
}

// The copies stay until that is on the disk: who is scheduler next may know of
// no checkpoint but the one before.
void RunControl::StoreCheckpoint(Job& job, absl::Time now, Actions& actions) {
  phase::SavingCopies stores(*job.run->between());
  stores.stage = phase::SavingCopies::kStoring;
  stores.since = now;
  stores.state.set_step(NewestCheckpoint(job.status));
  jobs_.Enter(job, PhaseEvent::kCopiesCommitted, std::move(stores));
  Perform(job, "", actions);
  jobs_.SetWaitReason(
      job,
      absl::StrCat("waits until it is stored that the checkpoint of step ",
                   NewestCheckpoint(job.status), " is there; ",
                   WhyItMoves(*job.run)),
      actions);
}

void RunControl::SaveCopiesOf(Job& job, const Recovery& newest, absl::Time now,
                              Actions& actions) {
  Run& run = *job.run;
  phase::SavingCopies saving(*run.between());
  // A scheduler before this one may have asked, too, and a worker that it left
  // may be writing still.
  saving.copies_token = saving.token = absl::StrCat(
      "job-", job.id.value(), "-", job.status.run_id(), "-", run.attempt, "-",
      absl::ToUnixMillis(now), "-", ++saving.copies_asked);
  saving.state = newest.state();
  saving.copies_step = newest.state().step();
  saving.since = now;
  saving.holders = HoldersOf(newest, static_cast<int>(run.ranks.size()));
  jobs_.Enter(job, PhaseEvent::kCopiesAsked, std::move(saving));
  Perform(job, "", actions);
  jobs_.SetWaitReason(
      job,
      absl::StrCat("saves the copies of step ", newest.state().step(),
                   ", to go on with other workers; ", WhyItMoves(run)),
      actions);
}

void RunControl::SendSaveCopies(Job& job, int rank, SaveCopies request,
                                Actions& actions) {
  auto& saving = *job.run->in<phase::SavingCopies>();
  const RankSeat& seat = job.run->ranks[rank];
  *request.mutable_ref() = RefOf(job, rank);
  request.mutable_ref()->set_attempt(seat.kept_by_attempt);
  *request.mutable_state() = saving.state;
  request.set_token(saving.token);
  request.set_run_id(job.status.run_id());
  request.set_resume(ResumeOf(job));
  request.set_ran_before(job.status.started_unix_ms() != 0);
  saving.awaited.insert(rank);
  SendToWorker send{seat.worker, {}, job.run->handed};
  *send.message.mutable_save_copies() = std::move(request);
  actions.push_back(std::move(send));
}

void RunControl::HandleCopiesSaved(WorkerId from, const CopiesSaved& saved,
                                   absl::Time now, Actions& actions) {
  Job* const job = jobs_.Find(JobId(saved.ref().job()));
  if (job == nullptr || job->run == nullptr) return;
  Run& run = *job->run;
  const int rank = saved.ref().rank();
  const phase::Between* const between = run.between();
  if (between == nullptr || between->copies_token != saved.token() ||
      rank < 0 || rank >= static_cast<int>(run.ranks.size())) {
    return;
  }
  const bool other_step = saved.has_checkpoint() &&
                          saved.checkpoint().step() != between->copies_step;
  auto* const saving = run.in<phase::SavingCopies>();
  if (saving == nullptr || saving->token != saved.token()) {
    // It was given up, and is there all the same; another may be stored now.
    if (saved.has_checkpoint() && !other_step)
      CopiesCommitted(*job, saved, now, actions);
    return;
  }
  const RankSeat& seat = run.ranks[rank];
  if (seat.worker != from ||
      // Heard again: it has answered that already.
      (saved.error().empty() &&
       saved.has_checkpoint() !=
           (saving->stage >= phase::SavingCopies::kCommitting)) ||
      saving->awaited.erase(rank) == 0) {
    return;
  }
  if (!saved.error().empty()) {
    return GiveUpCopies(
        *job, saved.fails_again() ? Unsaved::kForGood : Unsaved::kDisk,
        absl::StrCat(seat.Name(rank), ": ", saved.error()), now, actions);
  }
  if (other_step) {
    return GiveUpCopies(
        *job, Unsaved::kLate,
        absl::StrCat(seat.Name(rank), " committed step ",
                     saved.checkpoint().step(), " where it was asked for step ",
                     saving->copies_step),
        now, actions);
  }
  if (saving->stage >= phase::SavingCopies::kCommitting) {
    return CopiesCommitted(*job, saved, now, actions);
  }
  saving->shards.insert(saving->shards.end(), saved.shard_records().begin(),
                        saved.shard_records().end());
  if (saving->awaited.empty()) CommitCopiesOf(*job, actions);
}

void RunControl::CopiesCommitted(Job& job, const CopiesSaved& saved,
                                 absl::Time now, Actions& actions) {
  Run& run = *job.run;
  run.between()->copies_token.clear();
  CheckpointRecord checkpoint = saved.checkpoint();
  // First, for the next scheduler may go on from it.
  CloseSteps(job, run, checkpoint.step(), actions);
  checkpoint.set_attempt(run.attempt);
  jobs_.AddCheckpoint(job, checkpoint, now, actions);
  if (MovesOn(job)) return Move(job, WhyItMoves(run), now, actions);
  StoreCheckpoint(job, now, actions);
}

bool RunControl::AwaitsCopiesStored(const Job& job) {
  const phase::SavingCopies* const saving =
      job.run == nullptr ? nullptr : job.run->in<phase::SavingCopies>();
  return saving != nullptr && saving->stage >= phase::SavingCopies::kStoring;
}

void RunControl::CopiesStored(Job& job, const absl::Status& stored,
                              absl::Time now, Actions& actions) {
  CHECK(AwaitsCopiesStored(job)) << "job " << job.id;
  if (stored.ok() || MovesOn(job)) {
    return Move(job, WhyItMoves(*job.run), now, actions);
  }
  // Who leaves has no more to give: the checkpoint is on the workers' disk.
  auto& saving = *job.run->in<phase::SavingCopies>();
  saving.asked.again = saving.since = now;
  saving.stage = phase::SavingCopies::kRefused;
  LetLeave(job, LeavingRanks(job, workers_), actions);
  jobs_.SetWaitReason(job, WaitsForStore(stored), actions);
  TakePlaces(job, now, actions);
}

// By one that reads the job's data, if one is left: the checkpoint says what it
// was trained on.
void RunControl::CommitCopiesOf(Job& job, Actions& actions) {
  Run& run = *job.run;
  auto& saving = *run.in<phase::SavingCopies>();
  saving.stage = phase::SavingCopies::kCommitting;
  int by = -1;
  for (int rank = 0; rank < static_cast<int>(run.ranks.size()); ++rank) {
    if (!run.ranks[rank].taken() || run.ranks[rank].kept.empty()) continue;
    if (by < 0 || (run.handed->loads_data[rank] && !run.handed->loads_data[by]))
      by = rank;
  }
  CHECK_GE(by, 0) << "job " << job.id;
  SaveCopies request;
  request.mutable_commits()->set_rank(by);
  for (ShardRecord& shard : saving.shards) {
    *request.add_shard_records() = std::move(shard);
  }
  SendSaveCopies(job, by, std::move(request), actions);
}

// They stay in memory, but for those of workers that were asked to end, and of
// bad machines that no full disk excuses: a worker that comes goes on from
// them. Only a job that may not wait goes on from less, and one that would wait
// in vain.
void RunControl::GiveUpCopies(Job& job, Unsaved how, const std::string& why,
                              absl::Time now, Actions& actions) {
  Run& run = *job.run;
  if (how == Unsaved::kForGood) {
    run.between()->unsavable_step = run.in<phase::SavingCopies>()->state.step();
  }
  jobs_.Enter(job, PhaseEvent::kCopiesGivenUp,
              phase::AwaitPlaces(*run.between()));
  const bool moves = MovesOn(job);
  if (!moves) {
    LetLeave(job,
             how == Unsaved::kDisk ? RanksAskedToLeave(job, workers_)
                                   : LeavingRanks(job, workers_),
             actions);
  }
  const bool keeps =
      job.plan->job().has_elastic() || !LeavingRanks(job, workers_).empty();
  const bool again = !moves && keeps && CopiesToSave(job).has_value();
  const std::string next =
      again ? absl::StrCat("; tried again in ",
                           absl::FormatDuration(job.move_pause))
            : "";
  jobs_.AddEvent(
      job,
      absl::StrCat("copies of the ranks' states could not be saved: ",
                   OneLine(why, limits_.reason_bytes_max), next),
      now, actions);
  if (moves) return Move(job, WhyItMoves(run), now, actions);
  if (how != Unsaved::kForGood) PauseMoves(job, now);
  TakePlaces(job, now, actions);
}

void RunControl::AwaitDisk(Job& job, const std::set<int>& ranks,
                           Actions& actions) {
  Run& run = *job.run;
  run.in<phase::AwaitPlaces>()->for_disk = true;
  std::vector<std::string> names;
  for (const int rank : ranks) names.push_back(run.ranks[rank].Name(rank));
  jobs_.SetWaitReason(
      job,
      absl::StrCat("keeps ", NameList(std::move(names)),
                   " until the copies of ", "step ",
                   NewestCopies(run)->state().step(),
                   " are saved, which failed and is tried again at ",
                   absl::FormatTime("%H:%M:%S UTC", job.moves_after,
                                    absl::UTCTimeZone()),
                   "; ", run.stopped()->cause),
      actions);
}

void RunControl::SaveAgain(absl::Time now, Actions& actions) {
  for (const auto& [id, job] : jobs_.all()) {
    const phase::AwaitPlaces* const awaits =
        job->run == nullptr ? nullptr : job->run->in<phase::AwaitPlaces>();
    if (awaits == nullptr || !awaits->for_disk || IsPaused(*job, now)) continue;
    TakePlaces(*job, now, actions);
  }
}

void RunControl::PauseMoves(Job& job, absl::Time now) {
  job.moves_after = now + job.move_pause;
  job.move_pause = NextPause(job.move_pause);
}

void RunControl::SayMoved(Job& job, absl::Time now, Actions& actions) {
  const Run& run = *job.run;
  const size_t ranks = run.ranks.size();
  jobs_.AddEvent(
      job,
      absl::StrCat("goes on with ", ranks, ranks == 1 ? " worker" : " workers",
                   " after ", SecondsWords(now - job.stands_since),
                   ", with step ", run.ranks[0].first_step, RunAgain(job)),
      now, actions);
  GoOn(job, now, actions);
}

}  // namespace troupe
