#include "scheduler/cluster/stored_run.h"

#include <utility>

namespace troupe {
namespace {

// A build before phases were stored (protocol 16) said in other fields whether
// the attempt was being stopped.
bool StopsWithoutPhase(const JobStatus& status) {
  return status.state() == STOPPING ||
         (status.state() == RECOVERING && status.attempt_over());
}

JobIntent IntentWithoutPhase(const JobStatus& status, bool cancelled) {
  if (!status.save_why().empty()) return INTENT_SAVE_CANCEL;
  if (cancelled) return INTENT_CANCEL;
  return StopsWithoutPhase(status) ? INTENT_RECOVER : INTENT_RUN;
}

}  // namespace

bool StoredRun::stops() const {
  return phase == PHASE_STOPPING || phase == PHASE_LET_GO ||
         phase == PHASE_AWAIT_PLACES || phase == PHASE_SAVING_COPIES;
}

JobIntent StoredRun::intent_now() const {
  return intent == INTENT_SAVE_MOVE ? INTENT_RECOVER : intent;
}

StoredRun StoreRun(const Run& run, const JobStatus& status) {
  StoredRun stored = {.phase = status.phase(), .intent = status.intent()};
  if (stored.intent >= INTENT_SAVE_CANCEL) stored.save_why = WhyOf(run.intent);
  if (run.stopping()) stored.goes_on = run.stopped()->goes_on;
  for (size_t rank = 0; rank < run.ranks.size(); ++rank) {
    const auto& end = run.ranks[rank].end_to_store;
    if (end.has_value()) stored.ended[static_cast<int>(rank)] = *end;
  }
  return stored;
}

RunPhase ResumePhase(const StoredRun& stored, const JobStatus& status,
                     absl::Time now) {
  if (!stored.stops()) {
    phase::Adopting adopting;
    if (status.state() == RECOVERING) adopting.begins = status.reason();
    return adopting;
  }
  phase::Stopped stopped = {.since = now, .goes_on = stored.goes_on};
  if (!stored.cancelled) {
    stopped.Explain(Blame::kWorkerLost, status.reason());
  } else if (stored.intent == INTENT_SAVE_CANCEL) {
    stopped.save = SaveAtStop::kAsked;
  }
  return phase::Stopping(std::move(stopped));
}

void WriteRun(const StoredRun& stored, JobStatus& status) {
  WriteNoRun(status);
  status.set_phase(stored.phase);
  status.set_intent(stored.intent);
  status.set_save_why(stored.save_why);
  status.set_attempt_over(stored.goes_on);
  for (const auto& [rank, step] : stored.ended) {
    EndedRank& ended = *status.add_ended_ranks();
    ended.set_rank(rank);
    ended.set_step(step);
  }
}

void WriteNoRun(JobStatus& status) {
  status.clear_save_why();
  status.clear_attempt_over();
  status.clear_ended_ranks();
}

StoredRun TakeRun(JobStatus& status, bool cancelled) {
  StoredRun stored = {.phase = status.phase(),
                      .intent = status.intent(),
                      .save_why = status.save_why(),
                      .cancelled = cancelled,
                      .goes_on = status.attempt_over()};
  if (stored.phase == JOB_PHASE_UNSPECIFIED) {
    stored.phase = StopsWithoutPhase(status) ? PHASE_STOPPING : PHASE_TRAINING;
    stored.intent = IntentWithoutPhase(status, cancelled);
  }
  // To cancel a run is to stop it.
  if (cancelled && !stored.stops()) stored.phase = PHASE_STOPPING;
  for (const EndedRank& ended : status.ended_ranks()) {
    stored.ended[ended.rank()] = ended.step();
  }
  WriteNoRun(status);
  return stored;
}

}  // namespace troupe
