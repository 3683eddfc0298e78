#include "scheduler/cluster/run_copies.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/one_line.h"
#include "scheduler/cluster/attempt_counts.h"
#include "scheduler/cluster/effects.h"
#include "scheduler/cluster/enter_phase.h"
#include "scheduler/cluster/policy/copies_left.h"
#include "scheduler/cluster/policy/who_leaves.h"
#include "scheduler/cluster/run_moves.h"
#include "scheduler/cluster/run_places.h"
#include "scheduler/cluster/run_words.h"
#include "scheduler/cluster/wait_reason.h"

namespace troupe {
namespace {

// Which rank has the copy of each rank's state: itself, unless it is handed
// over.
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

void RunCopies::SaveCopiesOf(Job& job, const Recovery& newest, absl::Time now,
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
  effects_.Perform(job, "", actions);
  jobs_.SetWaitReason(
      job,
      absl::StrCat("saves the copies of step ", newest.state().step(),
                   ", to go on with other workers; ", WhyItMoves(run)),
      actions);
}

void RunCopies::HandleCopiesSaved(WorkerId from, const CopiesSaved& saved,
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

// By one that reads the job's data, if one is left: the checkpoint says what it
// was trained on.
void RunCopies::CommitCopiesOf(Job& job, Actions& actions) {
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
  effects_.SendSaveCopies(job, by, std::move(request), actions);
}

void RunCopies::CopiesCommitted(Job& job, const CopiesSaved& saved,
                                absl::Time now, Actions& actions) {
  Run& run = *job.run;
  run.between()->copies_token.clear();
  CheckpointRecord checkpoint = saved.checkpoint();
  // First, for the next scheduler may go on from it.
  steps_.CloseSteps(job, run, checkpoint.step(), actions);
  checkpoint.set_attempt(run.attempt);
  jobs_.AddCheckpoint(job, checkpoint, now, actions);
  if (moves_.MovesOn(job))
    return moves_.Move(job, WhyItMoves(run), now, actions);
  StoreCheckpoint(job, now, actions);
}

// The copies stay until that is on the disk: the next scheduler may know of no
// checkpoint but the one before.
void RunCopies::StoreCheckpoint(Job& job, absl::Time now, Actions& actions) {
  phase::SavingCopies stores(*job.run->between());
  stores.stage = phase::SavingCopies::kStoring;
  stores.since = now;
  stores.state.set_step(NewestCheckpoint(job.status));
  jobs_.Enter(job, PhaseEvent::kCopiesCommitted, std::move(stores));
  effects_.Perform(job, "", actions);
  jobs_.SetWaitReason(
      job,
      absl::StrCat("waits until it is stored that the checkpoint of step ",
                   NewestCheckpoint(job.status), " is there; ",
                   WhyItMoves(*job.run)),
      actions);
}

void RunCopies::CopiesStored(Job& job, const absl::Status& stored,
                             absl::Time now, Actions& actions) {
  CHECK(AwaitsCopiesStored(job)) << "job " << job.id;
  if (stored.ok() || moves_.MovesOn(job)) {
    return moves_.Move(job, WhyItMoves(*job.run), now, actions);
  }
  // A worker that leaves has no more to give: the checkpoint is on the workers'
  // disk.
  auto& saving = *job.run->in<phase::SavingCopies>();
  saving.asked.again = saving.since = now;
  saving.stage = phase::SavingCopies::kRefused;
  places_.LetLeave(job, LeavingRanks(job, workers_), actions);
  jobs_.SetWaitReason(job, WaitsForStore(stored), actions);
  places_.TakePlaces(job, now, actions);
}

// They stay in memory, but for those of workers that were asked to end, and of
// bad machines that no full disk excuses: a worker that comes goes on from
// them. Only a job that may not wait goes on from less, and one that would wait
// in vain.
void RunCopies::GiveUpCopies(Job& job, Unsaved how, const std::string& why,
                             absl::Time now, Actions& actions) {
  Run& run = *job.run;
  if (how == Unsaved::kForGood) {
    run.between()->unsavable_step = run.in<phase::SavingCopies>()->state.step();
  }
  SaveNoCopies(job, jobs_);
  const bool moves = moves_.MovesOn(job);
  if (!moves) {
    places_.LetLeave(job,
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
  if (moves) return moves_.Move(job, WhyItMoves(run), now, actions);
  if (how != Unsaved::kForGood) PauseMoves(job, now);
  places_.TakePlaces(job, now, actions);
}

void RunCopies::CheckTime(Job& job, absl::Time now, Actions& actions) {
  const auto& saving = *job.run->in<phase::SavingCopies>();
  const bool in_time = saving.stage >= phase::SavingCopies::kStoring ||
                       now - saving.since <= limits_.save_copies_max;
  if (in_time) return;
  GiveUpCopies(job, Unsaved::kLate,
               absl::StrCat("not within ",
                            absl::FormatDuration(limits_.save_copies_max)),
               now, actions);
}

}  // namespace troupe
