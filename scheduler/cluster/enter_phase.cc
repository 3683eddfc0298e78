#include "scheduler/cluster/enter_phase.h"

namespace troupe {

void LetGo(Job& job, JobTable& jobs) {
  const Run& run = *job.run;
  if (run.is<phase::LetGo>()) return;
  jobs.Enter(
      job,
      run.between_attempts() ? PhaseEvent::kStopped : PhaseEvent::kAllLetGo,
      phase::LetGo(run.stopping() ? *run.stopped() : phase::Stopped()));
}

void WaitInPlaces(Job& job, absl::Time now, JobTable& jobs) {
  jobs.Enter(job, PhaseEvent::kGoesOn,
             phase::AwaitPlaces({*job.run->stopped(), now}));
}

void SaveNoCopies(Job& job, JobTable& jobs) {
  jobs.Enter(job, PhaseEvent::kCopiesGivenUp,
             phase::AwaitPlaces(*job.run->between()));
}

}  // namespace troupe
