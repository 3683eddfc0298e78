#include "tests/faults/elastic_invariants.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "proto/plan/mesh.h"
#include "scheduler/cluster/hand_out.h"

namespace troupe {
namespace {

int HeldSeats(const Run& run) {
  return static_cast<int>(
      std::count_if(run.ranks.begin(), run.ranks.end(),
                    [](const RankSeat& seat) { return seat.taken(); }));
}

int AskedAtLeast(const Job& job) {
  return std::max(1, job.spec.elastic().min_workers());
}

std::vector<WorkerId> SeatsOf(const Run& run) {
  std::vector<WorkerId> seats;
  for (const RankSeat& seat : run.ranks) seats.push_back(seat.worker);
  return seats;
}

}  // namespace

int ElasticInvariants::LeastRanks(const Job& job) {
  if (!job.spec.has_elastic()) return job.ranks_needed;
  const int64_t bytes = job.spec.model().hidden_size();
  const int64_t fits = (bytes + kDeviceBytes - 1) / kDeviceBytes;
  return std::max(AskedAtLeast(job), static_cast<int>(fits));
}

// It said so in the same event.
bool ElasticInvariants::GivesWay(const Job& job) {
  return !job.events.empty() && absl::StrContains(job.events.back().text(),
                                                  "gives its workers to job");
}

bool ElasticInvariants::CouldNarrow(const Job& job, int idle) {
  return job.spec.has_elastic() && RecoveryInvariants::Missing(job) > 0 &&
         HeldSeats(*job.run) + idle >= AskedAtLeast(job);
}

int ElasticInvariants::IdleInTheEvent(const Cluster& cluster) const {
  int idle = 0;
  for (const auto& [id, worker] : cluster.workers().all()) {
    if (!worker.alive()) continue;
    const auto before = busy_with_.find(id);
    const bool was_busy_so =
        before != busy_with_.end() && before->second == worker.status.job();
    idle += worker.in_service() && (worker.idle() || !was_busy_so);
  }
  return idle;
}

void ElasticInvariants::OnAction(const Action& action, const Cluster& cluster) {
  if (const auto* send = std::get_if<SendToWorker>(&action)) {
    if (send->message.has_start()) OnStart(*send, cluster);
    if (send->message.has_save_copies()) {
      OnSaveCopies(send->message.save_copies(), cluster);
    }
  } else if (const auto* job = std::get_if<PersistJob>(&action)) {
    if (job->row->status.state() == QUEUED) {
      OnQueued(**cluster.FindJob(JobId(job->row->status.id())));
    }
  } else if (const auto* ask = std::get_if<AwaitStored>(&action)) {
    const auto asked = cluster.FindJob(ask->job);
    if (asked.ok()) asked_[ask->job] = NewestCheckpoint((*asked)->status);
  }
}

void ElasticInvariants::OnStart(const SendToWorker& send,
                                const Cluster& cluster) {
  const RankRef& ref = send.message.start().ref();
  const auto job = cluster.FindJob(JobId(ref.job()));
  ASSERT_TRUE(job.ok()) << job.status();
  const int32_t before = seen_[(*job)->id];
  if (before == ref.attempt()) return;  // another rank's was looked at
  seen_[(*job)->id] = ref.attempt();
  const Plan& plan = *send.hand_out->plan;
  const int ranks = MeshSize(plan.mesh());
  const std::string which = absl::StrCat("attempt ", ref.attempt(), " of job ",
                                         ref.job(), " on ", ranks, " workers");
  EXPECT_EQ(send.hand_out->machines.size(), static_cast<size_t>(ranks))
      << which;
  EXPECT_EQ((*job)->status.workers_size(), ranks) << which;
  EXPECT_EQ(plan.job().parallelism().data(), ranks) << which;
  EXPECT_EQ(plan.fingerprint(), compiler_.FingerprintOf((*job)->spec, ranks))
      << which << " has a plan that was made for others";
  if (before == 0) return;
  const Assignment& begins = send.hand_out->assignment;
  const int64_t after =
      begins.has_recovery()
          ? begins.recovery().state().step()
          : SimulatedAttempt::StepOfCheckpoint(begins.resume());
  CheckGoesOn(**job, after);
  left_.erase((*job)->id);
  said_[(*job)->id] = (*job)->events.size();
  const int ranks_before = attempts_.at({ref.job(), before}).ranks;
  EXPECT_TRUE(ranks == ranks_before || !begins.has_recovery())
      << which << " goes on from copies that " << ranks_before << " had made";
  if (after == 0) return;  // it begins
  narrowed_ += ranks < ranks_before;
  widened_ += ranks > ranks_before;
}

bool ElasticInvariants::GaveUpCopies(const Job& job) const {
  const auto said = said_.find(job.id);
  const size_t before = said == said_.end() ? 0 : said->second;
  return std::any_of(
      job.events.begin() + std::min(before, job.events.size()),
      job.events.end(), [](const JobEvent& event) {
        return absl::StrContains(event.text(), "could not be saved") &&
               !absl::StrContains(event.text(), "tried again in ");
      });
}

bool ElasticInvariants::IsUnsavable(const Job& job) const {
  return GaveUpCopies(job) &&
         std::any_of(job.events.begin(), job.events.end(),
                     [](const JobEvent& event) {
                       return absl::StrContains(event.text(), kDeviceIsBroken);
                     });
}

void ElasticInvariants::CheckGoesOn(const Job& job, int64_t after) const {
  const auto left = left_.find(job.id);
  if (left == left_.end() || GaveUpCopies(job) ||
      WasFlipped(attempts_, job.id.value())) {
    return;
  }
  EXPECT_GE(after, left->second)
      << "job " << job.id << " had copies of a later step"
      << RecoveryInvariants::EventLines(job);
}

// On which it has failed twice.
bool ElasticInvariants::IsOnBadMachine(const Job& job) {
  return job.losses_in_step > 1 &&
         std::any_of(job.run->ranks.begin(), job.run->ranks.end(),
                     [](const RankSeat& seat) {
                       return seat.taken() && seat.machine_fails;
                     });
}

void ElasticInvariants::OnSaveCopies(const SaveCopies& save,
                                     const Cluster& cluster) {
  const auto job = cluster.FindJob(JobId(save.ref().job()));
  ASSERT_TRUE(job.ok()) << job.status();
  const Run* run = (*job)->run.get();
  // A worker was lost in the same event.
  if (run == nullptr || !run->is<phase::SavingCopies>()) return;
  // Or it does not give it up by itself: one that keeps them was asked to end,
  // or its machine failed again.
  const bool leaves = std::any_of(
      run->ranks.begin(), run->ranks.end(), [&](const RankSeat& seat) {
        return seat.taken() && cluster.workers().Find(seat.worker)->leaving;
      });
  const bool asked = drains_ || leaves || IsOnBadMachine(**job) ||
                     GivesWay(**job) || (*job)->moves() ||
                     (*job)->ends_once_saved() ||
                     save.has_commits();  // by ranks that were asked before
  EXPECT_TRUE(asked || CouldNarrow(**job, IdleInTheEvent(cluster)))
      << "job " << (*job)->id << " gives up its plan for " << run->ranks.size()
      << " ranks, and there are too few workers for any other";
  for (const RankSeat& seat : run->ranks) {
    if (!seat.taken()) continue;
    // The scheduler has not heard that it is gone, and counts on it.
    const auto worker = workers_.find(seat.worker);
    if (worker == workers_.end() || worker->second.left()) return;
  }
  if (WasFlipped(attempts_, save.ref().job())) return;
  EXPECT_EQ(save.state().step(),
            RecoveryInvariants::NewestWhole((*job)->id, SeatsOf(*run), workers_,
                                            *run->handed->plan))
      << "job " << (*job)->id << " saves other copies than the newest";
}

// A worker that has died in the same event is none of the workers any more, and
// the others have not heard yet that they may give up what they keep.
void ElasticInvariants::OnQueued(const Job& job) {
  const auto found = waiting_.find(job.id);
  if (found == waiting_.end()) return;
  const Waiting waited = std::move(found->second);
  waiting_.erase(found);
  const Plan& plan = *waited.handed->plan;
  const std::optional<int64_t> newest =
      RecoveryInvariants::NewestWhole(job.id, waited.seats, workers_, plan);
  if (newest.has_value()) left_[job.id] = *newest;
  if (waited.may_not_wait || drains_ || IsUnsavable(job) ||
      WasFlipped(attempts_, job.id.value())) {
    return;
  }
  if (!waited.may_lose || !GaveUpCopies(job)) CheckStored(job, waited);
}

void ElasticInvariants::Stored(JobId job, const absl::Status& stored) {
  if (stored.ok()) {
    const auto asked = asked_.find(job);
    if (asked != asked_.end()) known_[job] = asked->second;
    return;
  }
  const auto waits = waiting_.find(job);
  if (waits != waiting_.end())
    waits->second.may_not_wait |= waits->second.may_lose;
}

// A worker that leaves takes along what it keeps, where the disk does not take
// that.
void ElasticInvariants::CheckStored(const Job& job,
                                    const Waiting& waited) const {
  std::vector<WorkerId> stay = waited.seats;
  for (WorkerId& seat : stay) {
    const auto worker = workers_.find(seat);
    if (worker != workers_.end() && worker->second.leaves()) seat = WorkerId();
  }
  const std::optional<int64_t> kept = RecoveryInvariants::NewestWhole(
      job.id, stay, workers_, *waited.handed->plan);
  // Where it began it can begin without any.
  if (!kept.has_value() || *kept == 0) return;
  const auto known = known_.find(job.id);
  EXPECT_GE(known == known_.end() ? -1 : known->second, *kept)
      << "job " << job.id
      << " gives up copies of a step of which the store has "
      << "not said that it knows a checkpoint"
      << RecoveryInvariants::EventLines(job);
}

void ElasticInvariants::Check(const Cluster& cluster) {
  busy_with_.clear();
  for (const auto& [id, worker] : cluster.workers().all()) {
    if (worker.status.job() != 0) busy_with_[id] = worker.status.job();
  }
  const auto before = std::exchange(waiting_, {});
  for (const auto& [id, job] : cluster.jobs().all()) {
    if (job->run == nullptr) continue;
    const int ranks = static_cast<int>(job->run->ranks.size());
    EXPECT_GE(ranks, LeastRanks(*job)) << "job " << id;
    EXPECT_LE(ranks, job->ranks_needed) << "job " << id;
    if (job->status.state() == RECOVERING &&
        (job->run->between_attempts() || job->moves())) {
      // The bad machine may have been left since, when they were given up.
      const auto waited = before.find(id);
      const bool left = waited != before.end() && waited->second.may_lose &&
                        waited->second.handed == job->run->handed;
      waiting_[id] = {job->run->handed, SeatsOf(*job->run),
                      job->ends_once_saved() || job->cancelled,
                      left || job->moves() || IsOnBadMachine(*job)};
    }
  }
}

void ElasticInvariants::CheckAtRest(const Cluster& cluster,
                                    absl::Time now) const {
  for (const auto& [id, job] : cluster.jobs().all()) {
    // What it keeps could not be saved; that is tried again.
    if (now < job->moves_after) continue;
    EXPECT_FALSE(CouldNarrow(*job, cluster.workers().idle_count()))
        << "job " << id
        << " could go on with fewer ranks: " << job->status.reason();
  }
}

// What was not stored never was.
void ElasticInvariants::Restarted() {
  drains_ = false;
  waiting_.clear();
  left_.clear();
  said_.clear();
  asked_.clear();
  known_.clear();
  for (const auto& [id, row] : store_.jobs()) {
    known_[id] = NewestCheckpoint(row.status);
  }
}

}  // namespace troupe
