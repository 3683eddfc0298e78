#include "scheduler/cluster/policy/goes_on.h"

namespace troupe {
namespace {

// Whether the job is to outlive an attempt.
bool AsksToRecover(const Job& job) {
  return !job.cancelled && job.status.intent() != INTENT_CANCEL &&
         job.defect.empty() && job.plan->job().has_recovery();
}

}  // namespace

AttemptEnd EndOf(const Job& job) {
  return {.asks = AsksToRecover(job),
          .is_known = job.run->handed != nullptr,
          .restarts = job.status.restarts(),
          .restarts_max = job.plan->job().recovery().restarts(),
          .moves = job.moves(),
          .unheard = job.run->says_nothing() || job.run->is<phase::Storing>(),
          .decided = IsToGoOn(job)};
}

bool IsToGoOn(const Job& job) {
  const phase::Stopped* const stopped = job.run->stopped();
  return !job.ended() && stopped != nullptr && stopped->goes_on;
}

bool MayRecover(const Job& job) { return MayRecover(EndOf(job)); }

bool MayBeginAgain(const Job& job) {
  const Run& run = *job.run;
  return run.blame() != Blame::kNone && run.restored != absl::InfinitePast() &&
         MayBeginAgain(EndOf(job));
}

bool MayMove(const Job& job) {
  return job.run->handed != nullptr && AsksToRecover(job) &&
         job.spec.checkpoint().has_directory();
}

}  // namespace troupe
