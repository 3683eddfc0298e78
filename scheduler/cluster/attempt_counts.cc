#include "scheduler/cluster/attempt_counts.h"

#include <utility>

#include "scheduler/cluster/policy/goes_on.h"
#include "scheduler/cluster/policy/may_recover.h"

namespace troupe {

// Where none was left, it was decided that it goes on at no such cost; a
// scheduler since then may not know why.
void CountRestart(Job& job) {
  if (!HasRestartsLeft(EndOf(job))) return;
  job.status.set_restarts(job.status.restarts() + 1);
}

// Since the first run that ended so, where others followed that were not ready.
void StandStill(Job& job) {
  if (job.stands_since != absl::InfinitePast() || job.stands_longer) return;
  // Unless its ranks ended by themselves: none was told to stop.
  const absl::Time since = job.run->stopped()->since;
  if (since != absl::InfiniteFuture()) job.stands_since = since;
}

void GoOn(Job& job, absl::Time now, JobTable& jobs, Actions& actions) {
  job.stands_longer = false;
  const absl::Time since =
      std::exchange(job.stands_since, absl::InfinitePast());
  if (since == absl::InfinitePast()) return;
  job.status.set_stood_seconds(job.status.stood_seconds() +
                               absl::ToDoubleSeconds(now - since));
  jobs.Save(job, actions);
}

void PauseMoves(Job& job, absl::Time now) {
  job.moves_after = now + job.move_pause;
  job.move_pause = NextPause(job.move_pause);
}

}  // namespace troupe
