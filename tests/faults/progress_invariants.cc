#include "tests/faults/progress_invariants.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "scheduler/cluster/choose_recovery.h"
#include "tests/faults/elastic_invariants.h"
#include "tests/faults/recovery_invariants.h"

namespace troupe {
namespace {

// With limits as cluster_simulation.cc has them: until a job gives way, saves
// its copies and is planned anew, while disks are full now and then.
constexpr absl::Duration kStuckMax = absl::Seconds(90);
// Until bad workers are in service again, for want of others.
constexpr absl::Duration kCalm = absl::Seconds(30);

int Ranks(const Job& job) { return static_cast<int>(job.run->ranks.size()); }

int Held(const Job& job) {
  return Ranks(job) - RecoveryInvariants::Missing(job);
}

bool LosesNothing(const Job& job, absl::Time now) {
  KeptByRank kept;
  for (const RankSeat& seat : job.run->ranks) kept.push_back(seat.kept);
  const auto newest = ChooseRecovery(*job.run->handed->plan, kept);
  const bool all_saved = !newest.has_value() ||
                         newest->state().step() <=
                             std::max<int64_t>(0, NewestCheckpoint(job.status));
  if (all_saved) return true;
  // They cannot be saved, and no disk is in the way.
  if (newest->state().step() == job.run->between()->unsavable_step)
    return false;
  return job.spec.checkpoint().has_directory() && now >= job.moves_after;
}

// The queued job that is to start before all others; null: none could.
const Job* FirstInQueue(const Cluster& cluster) {
  for (const JobId id : cluster.jobs().queue()) {
    const Job& job = *cluster.jobs().Find(id);
    const int least = job.spec.has_elastic()
                          ? std::max(1, job.spec.elastic().min_workers())
                          : job.ranks_needed;
    if (least <= cluster.workers().alive_count() &&
        cluster.jobs().SavesInPlaceOf(job) == nullptr) {
      return &job;
    }
  }
  return nullptr;
}

// Idle workers that a queued job takes: not where its start failed, as long as
// enough others are in service, idle or not.
int IdleFor(const Job& job, const Cluster& cluster) {
  const auto count = [&](bool idle, bool with_failed) {
    int workers = 0;
    for (const auto& [id, worker] : cluster.workers().all()) {
      const bool failed = job.failed_on.count(worker.name()) > 0;
      workers += (idle ? worker.available() : worker.in_service()) &&
                 (with_failed || !failed);
    }
    return workers;
  };
  const bool avoids = count(false, false) >= ElasticInvariants::LeastRanks(job);
  return count(true, !avoids);
}

// And of those that a job does not take since they computed wrongly under it.
int IdleButWrong(const Job& job, const Cluster& cluster) {
  int idle = 0;
  for (const Worker* worker : cluster.workers().Idle()) {
    idle += job.run->wrong_workers.count(worker->name()) == 0;
  }
  return idle;
}

bool IsSomethingUnderWay(const Cluster& cluster) {
  for (const auto& [id, job] : cluster.jobs().all()) {
    if (job->ended() && job->run == nullptr) continue;
    const JobPhase phase = job->status.phase();
    if (phase != PHASE_QUEUED && phase != PHASE_AWAIT_PLACES) return true;
  }
  const auto& workers = cluster.workers().all();
  return std::any_of(workers.begin(), workers.end(), [](const auto& worker) {
    return worker.second.status.text() != 0;
  });
}

}  // namespace

bool ProgressInvariants::IsStuck(const Cluster& cluster, absl::Time now) {
  if (IsSomethingUnderWay(cluster)) return false;
  std::vector<const Job*> waiting;
  for (const auto& [id, job] : cluster.jobs().all()) {
    if (job->run != nullptr) waiting.push_back(job.get());
  }
  for (const Job* helped : waiting) {
    const bool for_disk =
        RecoveryInvariants::AwaitsDisk(*helped) && now < helped->moves_after;
    if (for_disk) continue;
    int free = IdleButWrong(*helped, cluster);
    for (const Job* other : waiting) {
      if (other != helped && LosesNothing(*other, now)) free += Held(*other);
    }
    if (RecoveryInvariants::Missing(*helped) <= free) return true;
  }
  const Job* const first = FirstInQueue(cluster);
  // It was asked, and these workers will not do.
  if (first == nullptr ||
      first->waits()->too_small_at == cluster.workers().changes()) {
    return false;
  }
  int free = IdleFor(*first, cluster);
  for (const Job* other : waiting) {
    const bool holds_back = other->id < first->id &&
                            Ranks(*other) <= cluster.workers().alive_count();
    if (!holds_back && LosesNothing(*other, now)) free += Held(*other);
  }
  return ElasticInvariants::LeastRanks(*first) <= free;
}

// When no worker has come or gone for a while.
void ProgressInvariants::CheckSetAside(const Cluster& cluster, absl::Time now) {
  std::vector<WorkerId> there;
  int in_service = 0, fit = 0;
  bool too_many = false;
  for (const auto& [id, worker] : cluster.workers().all()) {
    if (!worker.alive() || worker.leaving) continue;
    there.push_back(id);
    const bool failed =
        absl::StrContains(worker.status.set_aside(), "failed on it");
    too_many |= failed;
    in_service += worker.in_service();
    fit += worker.in_service() || failed;
  }
  if (there != there_) calm_since_ = now;
  there_ = std::move(there);
  if (now - calm_since_ < kCalm) return;
  EXPECT_TRUE(!too_many || 2 * in_service >= fit) << "too many are set aside";
}

void ProgressInvariants::Check(const Cluster& cluster, absl::Time now) {
  CheckSetAside(cluster, now);
  if (!IsStuck(cluster, now)) {
    since_ = absl::InfiniteFuture();
    return;
  }
  since_ = std::min(since_, now);
  if (now - since_ <= kStuckMax) return;
  std::string jobs;
  for (const auto& [id, job] : cluster.jobs().all()) {
    if (job->ended()) continue;
    absl::StrAppend(&jobs, "\njob ", id.value(), ": ", job->status.reason());
  }
  ADD_FAILURE() << "for " << absl::FormatDuration(now - since_)
                << " no job has made progress, and some could:" << jobs;
}

}  // namespace troupe
