#include "tests/faults/cluster_invariants.h"

#include <algorithm>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "proto/plan/mesh.h"
#include "tests/faults/elastic_invariants.h"
#include "tests/faults/recovery_invariants.h"

namespace troupe {
namespace {

// Of "w1 (rank 1) failed in step 3: w0 (rank 0) failed in ..." there are two.
int Failures(const std::string& reason) {
  return static_cast<int>(
      std::vector<std::string>(absl::StrSplit(reason, ") failed in ")).size() -
      1);
}

AttemptKey KeyOf(const Job& job) { return {job.id.value(), job.attempt}; }

}  // namespace

void ClusterInvariants::AskedToSave(JobId job, bool save) {
  AskedToEnd(job);
  if (save) {
    to_be_saved_.insert(job);
  } else {
    to_be_saved_.erase(job);
  }
}

const SimulatedAttempt* ClusterInvariants::AttemptOf(const Job& job) const {
  const auto it = attempts_.find(KeyOf(job));
  return it == attempts_.end() ? nullptr : &it->second;
}

bool ClusterInvariants::WasCommitted(JobId job, int64_t step,
                                     const std::string& path) const {
  for (auto it = attempts_.lower_bound({job.value(), 0});
       it != attempts_.end() && it->first.first == job.value(); ++it) {
    const auto& [key, attempt] = *it;
    if (attempt.from_copies.count(path) > 0) return true;
    const auto committed = attempt.commits.find(step);
    if (committed == attempt.commits.end() || committed->second != 1) continue;
    if (path.empty() || path == CheckpointPath(attempt, key, step)) return true;
  }
  return false;
}

bool ClusterInvariants::WasHarmed(const Job& job) const {
  const SimulatedAttempt* attempt = AttemptOf(job);
  return harmed_.count(job.id) > 0 || (attempt != nullptr && attempt->harmed);
}

void ClusterInvariants::OnAction(const Action& action, const Cluster& cluster) {
  if (const auto* send = std::get_if<SendToWorker>(&action)) {
    if (send->message.has_start()) OnStart(*send, cluster);
    if (send->message.has_commit()) OnCommit(*send, cluster);
    const StopRank& stop = send->message.stop();
    const auto job = cluster.FindJob(JobId(stop.ref().job()));
    // Of one that begins anew, for its start was cut, nothing is kept.
    const bool anew = stop.forgotten() && job.ok() &&
                      ((*job)->status.state() == QUEUED ||
                       (*job)->status.state() == STARTING);
    if (stop.give_up_kept() || anew) {
      const auto attempt = attempts_.find(troupe::KeyOf(stop.ref()));
      if (attempt != attempts_.end()) attempt->second.given_up = true;
    }
  } else if (const auto* step = std::get_if<PersistStep>(&action)) {
    OnStep(*step, cluster);
  } else if (const auto* drop = std::get_if<DropWorker>(&action)) {
    const auto it = workers_.find(drop->worker);
    EXPECT_TRUE(it == workers_.end() || !it->second.healthy())
        << it->second.name() << " is well and was given up: " << drop->reason;
  } else if (const auto* forget = std::get_if<ForgetJob>(&action)) {
    EXPECT_GT(ended_.count(forget->job) + interrupted_.count(forget->job), 0u)
        << "job " << forget->job << " was forgotten before its end";
  } else if (const auto* reply = std::get_if<GenerateReply>(&action)) {
    EXPECT_EQ(texts_.count(reply->request), 1u)
        << "text " << reply->request << " went on after its end";
    if (reply->done) texts_.erase(reply->request);
  }
}

void ClusterInvariants::OnStart(const SendToWorker& send,
                                const Cluster& cluster) {
  const RankRef& ref = send.message.start().ref();
  const Plan& plan = *send.hand_out->plan;
  const AttemptKey key = troupe::KeyOf(ref);
  SimulatedAttempt& attempt = attempts_[key];
  attempt.job = plan.job();
  attempt.ranks = MeshSize(plan.mesh());
  attempt.BeginAs(send.hand_out->assignment);
  EXPECT_TRUE(attempt.told.insert(ref.rank()).second)
      << "attempt " << key.second << " of job " << key.first
      << " was given away twice";
  const auto row = store_.jobs().find(JobId(ref.job()));
  EXPECT_TRUE(row != store_.jobs().end() &&
              row->second.attempt >= ref.attempt())
      << "a worker hears of attempt " << key.second << " of job " << key.first
      << ", which is not on the disk";
  const auto worker = workers_.find(send.worker);
  if (worker == workers_.end() || !worker->second.healthy()) {
    attempt.harmed = true;
  }
  if (worker == workers_.end()) attempt.lost.insert(ref.rank());
  const auto job = cluster.FindJob(JobId(ref.job()));
  EXPECT_TRUE(job.ok() && (*job)->attempt == ref.attempt());
}

void ClusterInvariants::OnCommit(const SendToWorker& send,
                                 const Cluster& cluster) {
  const CheckpointCommit& commit = send.message.commit();
  const AttemptKey key = troupe::KeyOf(commit.ref());
  const int64_t step = commit.step();
  const std::string which =
      absl::StrCat("the checkpoint of step ", step, " of job ", key.first);
  EXPECT_TRUE(commits_asked_.insert({key, commit.write()}).second)
      << which << " is committed twice";
  EXPECT_EQ(commit.ref().rank(), 0);
  SimulatedAttempt& attempt = attempts_[key];
  EXPECT_EQ(commit.shards_size(), attempt.ranks) << which << " is not whole";
  for (int rank = 0; rank < commit.shards_size(); ++rank) {
    EXPECT_EQ(commit.shards(rank).shard().file(), ShardWords(key, step, rank))
        << "in " << which;
    EXPECT_EQ(attempt.shards[commit.write()].count(rank), 1u)
        << "of " << which << " rank " << rank << " has written nothing";
  }
  const auto job = cluster.FindJob(JobId(commit.ref().job()));
  // The next attempt may have begun since, in the same event.
  EXPECT_TRUE(job.ok() && ((*job)->attempt == key.second ||
                           (*job)->status.state() == RECOVERING))
      << which;
}

void ClusterInvariants::OnStep(const PersistStep& step,
                               const Cluster& cluster) {
  const auto job = cluster.FindJob(step.job);
  ASSERT_TRUE(job.ok()) << job.status();
  const AttemptKey key = KeyOf(**job);
  const int64_t number = step.step.step();
  EXPECT_GT(number, last_steps_[key])
      << "step " << number << " of job " << step.job << " comes again";
  last_steps_[key] = number;
  // Of a lost rank's last step another one that holds the same may have come to
  // the end: an attempt that goes on from there has finished it.
  int64_t finished = FinishedByAll(attempts_, step.job.value());
  if ((*job)->run != nullptr) {
    if (const auto& follows = (*job)->run->follows) {
      finished = std::max(finished, follows->resumes_at);
    }
  }
  const auto& checkpoints = (*job)->status.checkpoints();
  if (!checkpoints.empty()) {
    finished = std::max(finished, checkpoints.rbegin()->step());
  }
  EXPECT_LE(number, finished)
      << "step " << number << " of job " << step.job
      << " is reported, and not all its ranks have finished it";
}

void ClusterInvariants::Check(const Cluster& cluster) {
  CheckWorkers(cluster);
  CheckJobs(cluster);
}

void ClusterInvariants::CheckWorkers(const Cluster& cluster) {
  int idle = 0, in_service = 0, alive = 0;
  for (const auto& [id, worker] : cluster.workers().all()) {
    idle += worker.available();
    in_service += worker.in_service();
    alive += worker.alive();
    if (worker.status.state() != WorkerStatus::BUSY) {
      EXPECT_EQ(worker.status.job(), 0);
      EXPECT_EQ(worker.status.text(), 0);
    } else {
      EXPECT_NE(worker.status.job() != 0, worker.status.text() != 0)
          << worker.name() << " does not do one thing";
    }
  }
  EXPECT_EQ(cluster.workers().idle_count(), idle);
  EXPECT_EQ(cluster.workers().in_service_count(), in_service);
  EXPECT_EQ(cluster.workers().alive_count(), alive);
  std::set<std::pair<AttemptKey, int>> ranks;
  for (const auto& [id, worker] : workers_) {
    const Worker* known = cluster.workers().Find(id);
    if (known != nullptr && !worker.healthy()) {
      harmed_.insert(JobId(known->status.job()));
    }
    const RankRef* ref = worker.ref();
    if (ref == nullptr) continue;
    EXPECT_TRUE(ranks.insert({troupe::KeyOf(*ref), ref->rank()}).second)
        << "rank " << ref->rank() << " of job " << ref->job()
        << " has two workers";
    if (known == nullptr || !known->alive()) continue;
    if (worker.is_forgotten()) continue;
    EXPECT_EQ(known->status.job(), ref->job())
        << worker.name() << " does what the cluster knows nothing of";
    EXPECT_EQ(known->status.rank(), ref->rank());
  }
}

void ClusterInvariants::CheckJobs(const Cluster& cluster) {
  std::map<int64_t, std::set<int>> seats;  // by job: ranks that have a worker
  for (const auto& [id, worker] : cluster.workers().all()) {
    if (worker.status.job() == 0) continue;
    EXPECT_TRUE(seats[worker.status.job()].insert(worker.status.rank()).second)
        << "rank " << worker.status.rank() << " of job " << worker.status.job()
        << " has two workers";
  }
  for (const JobId id : promised_) {
    EXPECT_TRUE(cluster.FindJob(id).ok() || store_.Forgot(id))
        << "job " << id << " is lost";
  }
  std::set<std::string> directories;
  for (const auto& [id, job] : cluster.jobs().all()) {
    CheckRun(*job, seats[id.value()]);
    CheckAwaited(*job, cluster);
    CheckState(*job);
    CheckCheckpoints(*job);
    EXPECT_EQ(job->defect, "") << "job " << id;
    const std::string& directory = job->spec.checkpoint().directory();
    // What it has saved is its own until it has ended, though it is queued.
    const bool saves = job->run != nullptr ||
                       (!job->ended() && job->status.started_unix_ms() != 0);
    if (!saves || directory.empty()) continue;
    EXPECT_TRUE(directories.insert(directory).second)
        << "two jobs save in " << directory;
  }
}

void ClusterInvariants::CheckRun(const Job& job, const std::set<int>& seats) {
  std::set<int> live;
  bool seated = job.run == nullptr;
  if (job.run != nullptr) {
    EXPECT_EQ(static_cast<int>(job.run->ranks.size()),
              MeshSize(job.plan->mesh()))
        << "all ranks or none";
    for (size_t rank = 0; rank < job.run->ranks.size(); ++rank) {
      const RankSeat& seat = job.run->ranks[rank];
      if (seat.taken() && !seat.awaited()) live.insert(static_cast<int>(rank));
      seated |= seat.taken();
    }
    seated |= job.status.state() == RECOVERING;
  }
  EXPECT_TRUE(seated) << "job " << job.id << ": all have let go";
  if (job.run != nullptr && job.run->between_attempts()) {
    EXPECT_FALSE(job.run->ranks.awaits())
        << "job " << job.id << " would give a place away to which a worker may "
        << "come back";
  }
  EXPECT_EQ(live, seats) << "job " << job.id;
}

// A worker that has come back has its rank, or has lost it.
void ClusterInvariants::CheckAwaited(const Job& job, const Cluster& cluster) {
  if (job.run == nullptr || !job.run->ranks.awaits()) return;
  for (const auto& [id, worker] : cluster.workers().all()) {
    if (!worker.alive()) continue;
    for (const RankSeat& seat : job.run->ranks) {
      EXPECT_FALSE(seat.awaited() && seat.worker_name == worker.name())
          << "job " << job.id << " waits for " << worker.name()
          << ", which is there";
    }
  }
}

void ClusterInvariants::CheckState(const Job& job) {
  const JobState state = job.status.state();
  const bool runs = state == STARTING || state == RUNNING ||
                    state == STOPPING || state == RECOVERING;
  EXPECT_TRUE(runs || state == QUEUED || job.ended()) << "job " << job.id;
  EXPECT_EQ(EffectName(job.due), "") << "job " << job.id;
  const JobPhase phase =
      job.run == nullptr ? KindOf(job.phase) : KindOf(job.run->phase);
  EXPECT_EQ(PhaseName(phase), PhaseName(job.status.phase()))
      << "job " << job.id << " has the data of another phase";
  EXPECT_EQ(job.run != nullptr, std::holds_alternative<phase::InRun>(job.phase))
      << "job " << job.id;
  // A failed one waits until its ranks let go.
  if (state != FAILED) {
    EXPECT_EQ(job.run != nullptr, runs) << "job " << job.id;
  }
  if (state == QUEUED || state == FAILED || state == STOPPING) {
    EXPECT_NE(job.status.reason(), "")
        << "job " << job.id << " does not say why it is "
        << JobState_Name(state);
  }
  // One that could not be stored waits again, if no worker has heard of it.
  // So does one that was still in its start when the scheduler was killed.
  const bool withdrawn =
      state == QUEUED && states_[job.id] == STARTING &&
      (AttemptOf(job) == nullptr || interrupted_.count(job.id) > 0);
  // It was saved to go on with others, which may be there at once.
  const bool moved =
      RecoveryInvariants::AsksToMove(job) &&
      ((state == QUEUED && job.waits()->moved) ||
       (state == STARTING && job.stands_since != absl::InfinitePast()));
  // Its start failed for a cause of its workers, and is tried on others. Where
  // it had failed before that is not counted.
  const bool elsewhere =
      (job.failed_starts > 0 || !job.failed_on.empty()) &&
      (state == QUEUED || state == STARTING) &&
      (states_[job.id] == STARTING || states_[job.id] == STOPPING);
  EXPECT_LT(job.failed_starts, Limits().starts_max) << "job " << job.id;
  const bool again = state == RECOVERING || states_[job.id] == RECOVERING;
  const bool forward = job.ended() || withdrawn || again || moved ||
                       elsewhere || state >= states_[job.id];
  EXPECT_TRUE(forward) << "job " << job.id << " goes back to "
                       << JobState_Name(state);
  states_[job.id] = state;
  // Its copies may be saved first.
  const bool ends =
      state == RECOVERING && job.run != nullptr && job.ends_once_saved();
  if (!ends && (state == QUEUED || state == STARTING || state == RUNNING ||
                state == RECOVERING)) {
    EXPECT_EQ(asked_to_end_.count(job.id), 0u)
        << "job " << job.id << " was asked to end and goes on, "
        << JobState_Name(state) << ": " << job.status.reason()
        << RecoveryInvariants::EventLines(job);
  }
  const auto end = ended_.find(job.id);
  if (end == ended_.end()) {
    if (job.ended()) CheckEnd(job);
  } else {
    EXPECT_EQ(end->second, std::make_pair(state, job.status.reason()))
        << "job " << job.id << " had ended";
  }
}

void ClusterInvariants::CheckEnd(const Job& job) {
  const JobState state = job.status.state();
  const std::string& reason = job.status.reason();
  ended_[job.id] = {state, reason};
  ++ends_[state];
  const std::string which = absl::StrCat(
      "job ", job.id.value(), " is ", JobState_Name(state), " (", reason, ")");
  const SimulatedAttempt* attempt = AttemptOf(job);
  const int64_t steps = job.spec.training().steps();
  if (state == SUCCEEDED) {
    ASSERT_NE(attempt, nullptr) << which;
    // Those that were asked to stop, for the job to move, in the last step say
    // so, and have done all the same.
    EXPECT_TRUE(attempt->ended_ok.size() ==
                    static_cast<size_t>(attempt->ranks) ||
                (RecoveryInvariants::AsksToMove(job) &&
                 attempt->FinishedByAll() == steps))
        << which << ", and not all ranks did";
    EXPECT_EQ(job.status.steps_done(), steps) << which;
    adopted_ += interrupted_.count(job.id);
    EXPECT_TRUE(!attempt->Saves() || WasCommitted(job.id, steps))
        << which << " without its last checkpoint";
    EXPECT_TRUE(!attempt->Saves() || NewestCheckpoint(job.status) == steps)
        << which << " and does not list its last checkpoint";
  } else if (state == FAILED) {
    // Where it recovers as the scheduler dies, that may be the restart too
    // much.
    const bool last_one =
        interrupted_.count(job.id) > 0 && job.spec.has_recovery() &&
        job.status.restarts() >= job.spec.recovery().restarts();
    EXPECT_TRUE(WasHarmed(job) || last_one)
        << which << " without a cause" << RecoveryInvariants::EventLines(job);
    EXPECT_LE(Failures(reason), 1) << which << ", which is an echo";
  } else {
    EXPECT_GT(asked_to_end_.count(job.id) + may_end_.count(job.id), 0u)
        << which << " by nobody";
  }
  if (to_be_saved_.count(job.id) > 0 && attempt != nullptr && !WasHarmed(job)) {
    const int64_t step =
        std::max(attempt->begins_after, attempt->FinishedByAll());
    EXPECT_TRUE(WasCommitted(job.id, step))
        << which << " and was to be saved"
        << RecoveryInvariants::EventLines(job);
    EXPECT_TRUE(state == SUCCEEDED || absl::StrContains(reason, "; saved in "))
        << which;
  }
}

void ClusterInvariants::CheckCheckpoints(const Job& job) {
  // Nothing changes any more.
  if (job.ended() && job.run == nullptr && !over_.insert(job.id).second) return;
  int64_t last = -1;
  for (const CheckpointRecord& checkpoint : job.status.checkpoints()) {
    const int64_t step = checkpoint.step();
    EXPECT_GT(step, last) << "job " << job.id
                          << " lists a checkpoint twice or out of order";
    last = step;
    EXPECT_TRUE(WasCommitted(job.id, step, checkpoint.path()))
        << "job " << job.id << " lists " << checkpoint.path()
        << ", which was not committed once";
  }
  if (!job.ended()) return;
  std::set<std::string> told;
  for (const JobEvent& event : job.events) {
    if (!absl::StartsWith(event.text(), "checkpoint of step ")) continue;
    EXPECT_TRUE(told.insert(event.text()).second)
        << "job " << job.id << " says twice: " << event.text();
  }
}

void ClusterInvariants::CheckAtRest(const Cluster& cluster) {
  EXPECT_TRUE(texts_.empty()) << "text " << *texts_.begin() << " has no end";
  int held = 0;  // by jobs that wait for others
  std::set<int64_t> wait;
  for (const auto& [id, job] : cluster.jobs().all()) {
    const int missing = RecoveryInvariants::Missing(*job);
    if (missing == 0) continue;
    wait.insert(id.value());
    held += static_cast<int>(job->run->ranks.size()) - missing;
  }
  for (const auto& [id, worker] : workers_) {
    const Worker* known = cluster.workers().Find(id);
    EXPECT_TRUE(known == nullptr || !known->alive() || known->idle() ||
                wait.count(known->status.job()) > 0)
        << worker.Doing();
  }
  const int free = cluster.workers().alive_count() - held;
  for (const auto& [id, job] : cluster.jobs().all()) {
    if (wait.count(id.value()) > 0) continue;
    EXPECT_EQ(job->run, nullptr)
        << "job " << id << " is " << JobState_Name(job->status.state())
        << " at " << job->status.ShortDebugString();
    if (job->status.state() == SUCCEEDED) {
      const SimulatedAttempt& attempt = *AttemptOf(*job);
      std::set<int64_t> all;
      const int64_t before =
          SimulatedAttempt::StepOfCheckpoint(attempt.job.checkpoint().resume());
      for (int64_t step = before + 1; step <= attempt.job.training().steps();
           ++step) {
        all.insert(step);
      }
      EXPECT_EQ(store_.StepsOf(id), all) << "job " << id;
    }
    if (job->ended() || job->run != nullptr) continue;
    const std::string& reason = job->status.reason();
    // Behind one that waits for workers which are held.
    if (held > 0 && absl::StrContains(reason, "waits behind job")) continue;
    if (RecoveryInvariants::WaitsForDirectory(*job, cluster)) continue;
    const int elsewhere = static_cast<int>(job->failed_on.size());
    EXPECT_GT(ElasticInvariants::LeastRanks(*job), free - elsewhere)
        << "job " << id << " waits for nothing: " << reason;
    EXPECT_TRUE(absl::StrContains(reason, "worker"))
        << "job " << id << " " << reason;
  }
}

void ClusterInvariants::Restarted() {
  texts_.clear();
  states_.clear();
  over_.clear();
  ended_.clear();
  interrupted_.clear();
  commits_asked_.clear();
  last_steps_.clear();
  // The client that asked was not answered: the next scheduler does not know of
  // it, but some ranks do.
  for (const JobId id : asked_to_end_) {
    if (promised_to_end_.count(id) == 0) harmed_.insert(id);
  }
  asked_to_end_ = promised_to_end_;
  std::set<JobId> stored;
  for (const auto& [id, row] : store_.jobs()) {
    stored.insert(id);
    const JobState state = row.status.state();
    if (Job::IsEnded(state)) {
      ended_[id] = {state, row.status.reason()};
    } else if (state != QUEUED) {
      interrupted_.insert(id);
      const std::set<int64_t> steps = store_.StepsOf(id);
      if (!steps.empty()) {
        last_steps_[{id.value(), row.attempt}] = *steps.rbegin();
      }
    }
    if (row.cancelled || !row.status.save_why().empty()) {
      asked_to_end_.insert(id);
    }
  }
  // What is not on the disk never was: its number is free. What was promised
  // is held against, in Check.
  for (std::set<JobId>* ids : {&may_end_, &to_be_saved_, &harmed_}) {
    for (auto it = ids->begin(); it != ids->end();) {
      it = stored.count(*it) > 0 ? std::next(it) : ids->erase(it);
    }
  }
}

}  // namespace troupe
