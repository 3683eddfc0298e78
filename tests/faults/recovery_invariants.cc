#include "tests/faults/recovery_invariants.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "proto/plan/copies.h"
#include "proto/plan/mesh.h"
#include "scheduler/cluster/hand_out.h"

namespace troupe {

int RecoveryInvariants::Missing(const Job& job) {
  if (job.run == nullptr || !job.run->between_attempts()) return 0;
  int missing = 0;
  for (const RankSeat& seat : job.run->ranks) missing += !seat.taken();
  return missing;
}

bool RecoveryInvariants::AwaitsDisk(const Job& job) {
  const phase::AwaitPlaces* const awaits =
      job.run == nullptr ? nullptr : job.run->in<phase::AwaitPlaces>();
  return awaits != nullptr && awaits->for_disk;
}

std::string RecoveryInvariants::EventLines(const Job& job) {
  std::string lines;
  for (const JobEvent& event : job.events) {
    absl::StrAppend(&lines, "\n", event.unix_ms(), " ", event.text());
  }
  return lines;
}

bool RecoveryInvariants::MayMove(const Job& job) {
  return job.run != nullptr && job.run->handed != nullptr && !job.cancelled &&
         AsksToMove(job);
}

bool RecoveryInvariants::WaitsForDirectory(const Job& job,
                                           const Cluster& cluster) {
  const Job* saves = cluster.jobs().SavesInPlaceOf(job);
  return saves != nullptr &&
         (Missing(*saves) > 0 || saves->status.state() == QUEUED);
}

void RecoveryInvariants::OnAction(const Action& action,
                                  const Cluster& cluster) {
  if (const auto* send = std::get_if<SendToWorker>(&action)) {
    if (send->message.has_start()) OnStart(*send, cluster);
  } else if (const auto* step = std::get_if<PersistStep>(&action)) {
    OnStep(*step);
  }
}

void RecoveryInvariants::OnStart(const SendToWorker& send,
                                 const Cluster& cluster) {
  const RankRef& ref = send.message.start().ref();
  const auto job = cluster.FindJob(JobId(ref.job()));
  ASSERT_TRUE(job.ok()) << job.status();
  const Assignment& begins = send.hand_out->assignment;
  const int32_t before = seen_[(*job)->id];
  if (before == ref.attempt()) return;  // another rank's was looked at
  seen_[(*job)->id] = ref.attempt();
  const int restarts = (*job)->status.restarts();
  const bool lost = std::exchange(restarts_[(*job)->id], restarts) < restarts;
  if (before == 0) {
    last_steps_[(*job)->id] =
        SimulatedAttempt::StepOfCheckpoint(begins.resume());
    return;
  }
  if (WasFlipped(attempts_, ref.job())) return;
  std::vector<WorkerId> seats;
  for (const RankSeat& seat : (*job)->run->ranks) {
    seats.push_back(seat.worker);
    // The scheduler has not heard that it is gone, and counts on it.
    const auto worker = workers_.find(seat.worker);
    if (worker == workers_.end() || worker->second.left()) return;
  }
  std::string which =
      absl::StrCat("attempt ", ref.attempt(), " of job ", ref.job(),
                   " begins as ", begins.recovery().ShortDebugString());
  for (const RankSeat& seat : (*job)->run->ranks) {
    absl::StrAppend(&which, "\n", workers_.at(seat.worker).Doing());
  }
  which += EventLines(**job);
  const Plan& plan = *send.hand_out->plan;
  const bool starts = (*job)->status.state() == STARTING;
  if (starts && cut_starts_.erase((*job)->id) == 0) {
    const SimulatedAttempt& last = attempts_.at({ref.job(), before});
    // Else copies may be gone, or could not be saved.
    const bool ran = (*job)->status.started_unix_ms() != 0;
    const auto& events = (*job)->events;
    const bool full =
        std::any_of(events.begin(), events.end(), [](const JobEvent& event) {
          return absl::StrContains(event.text(), "could not be saved");
        });
    // Which costs no restart where none is left, or where no rank had begun.
    bool failed = false;
    for (auto event = events.rbegin();
         event != events.rend() && event->text() != "running"; ++event) {
      failed |= absl::StrContains(event->text(), " failed in ") ||
                absl::StrContains(event->text(), " was lost in its ");
    }
    if (ran && !lost && !full && !failed)
      EXPECT_GE(SimulatedAttempt::StepOfCheckpoint(begins.resume()),
                std::max(last.FinishedByAll(), last.begins_after))
          << which << " from the queue, and has not saved all that it did";
  }
  // From the queue it goes on from what it saved, if it has run at all.
  std::optional<int64_t> newest =
      starts ? std::nullopt : NewestWhole((*job)->id, seats, workers_, plan);
  EXPECT_TRUE(starts || newest.has_value() ||
              !LeavesCopies(attempts_.at({ref.job(), before}), plan))
      << which << " and the copies are gone, though who kept them was there";
  const auto& checkpoints = (*job)->status.checkpoints();
  // A newer checkpoint costs fewer steps.
  if (newest.has_value() && !checkpoints.empty() &&
      checkpoints.rbegin()->step() > *newest) {
    newest.reset();
  }
  ASSERT_EQ(begins.has_recovery(), newest.has_value()) << which;
  if (newest.has_value()) {
    ++from_copies_;
    EXPECT_EQ(begins.recovery().state().step(), *newest) << which;
    const SimulatedAttempt& last = attempts_.at({ref.job(), before});
    EXPECT_LE(last.FinishedByAll() - *newest, last.KeepEvery() + 1)
        << which << " and loses more steps than it needs to";
  } else {
    ++from_elsewhere_;
    EXPECT_EQ(begins.resume(), checkpoints.empty()
                                   ? plan.job().checkpoint().resume()
                                   : checkpoints.rbegin()->path())
        << which;
  }
}

// A step is finished with the copies whole that were made before it. They are
// given up at the job's end, of which the store may never hear, and with its
// plan.
bool RecoveryInvariants::LeavesCopies(const SimulatedAttempt& attempt,
                                      const Plan& plan) {
  if (!KeepsCopies(plan.job(), plan.mesh()) || attempt.given_up ||
      attempt.ranks != MeshSize(plan.mesh()) ||
      attempt.FinishedByAll() <= attempt.begins_after) {
    return false;
  }
  const auto lost = [&](int rank) { return attempt.lost.count(rank) > 0; };
  for (const int rank : attempt.lost) {
    const std::vector<int> alike = RanksAlike(plan, rank);
    const bool left = !std::all_of(alike.begin(), alike.end(), lost) ||
                      (NeedsMirrors(plan) && !lost(MirrorOf(plan, rank)));
    if (!left) return false;
  }
  return true;
}

std::optional<int64_t> RecoveryInvariants::NewestWhole(
    JobId job, const std::vector<WorkerId>& seats,
    const std::map<WorkerId, SimulatedWorker>& workers, const Plan& plan) {
  const int ranks = static_cast<int>(seats.size());
  std::vector<const SimulatedCopies*> kept(ranks);
  std::set<int64_t> steps;
  for (int rank = 0; rank < ranks; ++rank) {
    const auto worker = workers.find(seats[rank]);
    // What it was told to forget or to give up it may still have. A worker that
    // does not answer in time is told so, and may be the next one that is idle.
    if (worker == workers.end() || worker->second.is_forgotten() ||
        worker->second.is_to_give_up_kept()) {
      continue;
    }
    const SimulatedKept* of = worker->second.kept();
    if (of == nullptr || of->ref.job() != job.value()) continue;
    kept[rank] = &of->copies;
    for (const auto& copy : of->copies.Whole()) steps.insert(copy.step);
  }
  const auto has = [&](int rank, int64_t step, bool peer) {
    return kept[rank] != nullptr && kept[rank]->Find(step, peer) != nullptr;
  };
  const auto whole = [&](int rank, int64_t step) {
    if (has(rank, step, false)) return true;
    if (ranks > 1 && has(MirrorOf(plan, rank), step, true)) return true;
    for (const int other : RanksAlike(plan, rank)) {
      if (has(other, step, false)) return true;
      if (has(MirrorOf(plan, other), step, true)) return true;
    }
    return false;
  };
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    int left = 0;
    for (int rank = 0; rank < ranks; ++rank) left += whole(rank, *step);
    if (left == ranks) return *step;
  }
  return std::nullopt;
}

void RecoveryInvariants::OnStep(const PersistStep& step) {
  const int64_t number = step.step.step();
  EXPECT_EQ(number, last_steps_[step.job] + 1) << "of job " << step.job;
  last_steps_[step.job] = number;
}

// What it had not stored is reported again.
void RecoveryInvariants::Restarted(const SimulatedStore& store) {
  for (const auto& [id, row] : store.jobs()) {
    // Nor does the next scheduler save what moved under this one; that is a
    // restart, where one was left.
    const bool moved = row.status.state() == RECOVERING &&
                       row.status.restarts() == row.spec.recovery().restarts();
    if (row.status.state() == STARTING || moved) cut_starts_.insert(id);
    const std::set<int64_t> steps = store.StepsOf(id);
    last_steps_[id] =
        steps.empty()
            ? SimulatedAttempt::StepOfCheckpoint(row.spec.checkpoint().resume())
            : *steps.rbegin();
  }
}

void RecoveryInvariants::Check(const Cluster& cluster) const {
  for (const auto& [id, job] : cluster.jobs().all()) {
    if (job->status.state() != RECOVERING) continue;
    EXPECT_TRUE(job->spec.has_recovery()) << "job " << id;
    EXPECT_LE(job->status.restarts(), job->spec.recovery().restarts());
    EXPECT_NE(job->status.reason(), "") << "job " << id;
    int missing = Missing(*job);
    for (size_t r = 0; r < job->run->ranks.size(); ++r) {
      // It keeps what it has until another one can take its place.
      const RankSeat& seat = job->run->ranks[r];
      missing += job->run->is<phase::AwaitPlaces>() && seat.taken() &&
                 seat.machine_fails &&
                 absl::StrContains(job->status.reason(),
                                   seat.Name(static_cast<int>(r)));
    }
    if (missing == 0 || job->run->is<phase::SavingCopies>()) continue;
    if (AwaitsDisk(*job)) {
      EXPECT_TRUE(absl::StrContains(job->status.reason(), "is tried again at"))
          << "job " << id << ": " << job->status.reason();
      continue;
    }
    if (cluster.has_scheduling_left()) continue;  // the next tick does it
    int idle = 0;  // without those where its start failed: it waits for others
    for (const Worker* worker : cluster.workers().Idle()) {
      idle += job->run->wrong_workers.count(worker->name()) == 0 &&
              !absl::StrContains(
                  job->status.reason(),
                  absl::StrCat("it does not take ", worker->name(), ","));
    }
    EXPECT_GT(missing, idle)
        << "job " << id << " could go on" << EventLines(*job);
    EXPECT_TRUE(absl::StrContains(job->status.reason(), "waits for"))
        << "job " << id << ": " << job->status.reason();
  }
}

void RecoveryInvariants::CheckAtRest(const Cluster& cluster) const {
  for (const auto& [id, worker] : workers_) {
    const SimulatedKept* kept = worker.kept();
    const Worker* known = cluster.workers().Find(id);
    if (kept == nullptr || !worker.healthy()) continue;
    if (known == nullptr || !known->alive()) continue;
    const auto job = cluster.FindJob(JobId(kept->ref.job()));
    EXPECT_TRUE(job.ok() && (Missing(**job) > 0 || AwaitsDisk(**job)))
        << worker.name() << " keeps copies that nobody needs, of "
        << kept->ref.ShortDebugString() << "; it " << worker.Doing();
    EXPECT_EQ(known->status.job(), kept->ref.job());
    EXPECT_EQ(known->status.rank(), kept->ref.rank());
  }
}

}  // namespace troupe
