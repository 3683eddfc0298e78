#include "scheduler/cluster/worker_blame.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/one_line.h"

namespace troupe {

void WorkerBlame::Failed(Job& job, const RankSeat& seat, const std::string& why,
                         absl::Time now, Actions& actions) {
  if (job.cancelled || job.ended()) return;
  if (seat.ready() && now - job.run->started >= limits_.does_well_after) {
    return workers_.DidWell(seat.worker_name);
  }
  workers_.Doubt(seat.worker_name);
  const std::string line = OneLine(why, limits_.reason_bytes_max);
  // It trained there before that: the job itself is well.
  if (job.run->ranks.all_ready()) {
    return Count(job, seat.worker_name, line, now, actions);
  }
  job.failed_on[seat.worker_name] = line;
}

void WorkerBlame::AllReady(Job& job, absl::Time now, Actions& actions) {
  job.failed_starts = 0;
  job.avoid_pause = Job::kFirstPause;
  for (const auto& [worker, why] : std::exchange(job.failed_on, {})) {
    if (job.run->ranks.HasWorker(worker)) continue;
    Count(job, worker, why, now, actions);
  }
}

void WorkerBlame::Count(Job& job, const std::string& worker,
                        const std::string& why, absl::Time now,
                        Actions& actions) {
  if (!workers_.AddLocalFailure(worker, job.id, why)) return;
  jobs_.AddEvent(job,
                 absl::StrCat(worker,
                              " is set aside: several jobs failed on "
                              "it, and not elsewhere"),
                 now, actions);
}

}  // namespace troupe
