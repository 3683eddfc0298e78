#include "scheduler/cluster/run.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/plan/islands.h"
#include "proto/plan/last_step.h"

namespace troupe {

namespace {

// Where each step is one replica's, it takes that as long as all others need
// for a step each, on average.
Limits LimitsOfSteps(const Plan& plan, Limits limits) {
  if (plan.derived().takes_turns()) {
    limits.late_steps *= plan.job().parallelism().data();
    limits.hang_steps *= plan.job().parallelism().data();
  }
  return limits;
}

}  // namespace

Run::Run(int rank_count, const Plan& plan, const Limits& limits)
    : ranks(rank_count),
      rendezvous(limits),
      steps(rank_count, plan),
      checkpoints(rank_count),
      reports(rank_count),
      deadline(absl::Seconds(LongestStepSeconds(plan)),
               LimitsOfSteps(plan, limits)),
      hang_max(HangMax(plan, LimitsOfSteps(plan, limits))) {}

bool Run::saving() const {
  return stopping() && stopped()->save == SaveAtStop::kAsked;
}

bool Run::unheard() const {
  if (stopping()) return stopped()->unheard;
  return is<phase::Adopting>() && in<phase::Adopting>()->unheard;
}

Blame Run::blame() const {
  return stopping() ? stopped()->blame : Blame::kNone;
}

bool Run::CostsRestart() const {
  return blame() != Blame::kNone && !says_nothing() &&
         stopped()->save != SaveAtStop::kUnwritten;
}

bool Run::SavesCopiesWith(int rank) const {
  const auto* const saving = in<phase::SavingCopies>();
  return saving != nullptr &&
         (saving->stage < phase::SavingCopies::kCommitting ||
          saving->awaited.count(rank) > 0);
}

std::vector<KeptCopy> Run::SoundCopies(const RankSeat& seat) const {
  const int64_t end =
      seat.ready() ? wrong_since : std::min(wrong_since, wrong_before);
  std::vector<KeptCopy> sound;
  for (const KeptCopy& copy : seat.kept) {
    if (copy.state().step() < end) sound.push_back(copy);
  }
  return sound;
}

int64_t Run::WrongBeforeNext() const {
  return ranks.all_ready() ? wrong_since : std::min(wrong_since, wrong_before);
}

void Run::GotOn(int rank, absl::Time now) {
  progress = now;
  ranks[rank].heard = now;
}

void Run::Forgive(absl::Duration time, absl::Time now) {
  const auto forgive = [&](absl::Time& since) {
    if (since != absl::InfiniteFuture()) since = std::min(since + time, now);
  };
  for (absl::Time* since :
       {&restored, &started, &disk_progress, &progress, &outside_step}) {
    forgive(*since);
  }
  if (stopping()) forgive(stopped()->since);
  if (auto* const training = in<phase::Training>()) {
    forgive(training->late.said);
    forgive(training->late.looked);
  }
  if (auto* const saving = in<phase::SavingCopies>()) forgive(saving->since);
  for (RankSeat& seat : ranks) forgive(seat.heard);
  for (RankReport& report : reports) {
    forgive(report.heard);
    forgive(report.disk_moved);
  }
}

absl::Duration HangMax(const Plan& plan, const Limits& limits) {
  double seconds = LongestStepSeconds(plan);
  const int train = plan.derived().micro_batches();
  if (train > 0) {
    seconds *= 1.0 + plan.derived().validation_micro_batches() /
                         static_cast<double>(train);
  }
  return std::max(limits.hang_min, absl::Seconds(limits.hang_steps * seconds));
}

absl::Duration CollectiveMax(const Plan& plan, const Limits& limits) {
  return std::max(limits.collective_min,
                  absl::Seconds(LimitsOfSteps(plan, limits).hang_steps *
                                LongestStepSeconds(plan)));
}

int64_t NewestCheckpoint(const JobStatus& status) {
  return status.checkpoints().empty() ? -1
                                      : status.checkpoints().rbegin()->step();
}

std::string NewestCheckpointPath(const JobStatus& status) {
  return status.checkpoints().empty() ? status.resumed_from()
                                      : status.checkpoints().rbegin()->path();
}

std::string NewestSaved(const JobStatus& status) {
  const int64_t saved = NewestCheckpoint(status);
  if (saved < 0) return "";
  const std::string& path = status.checkpoints().rbegin()->path();
  if (saved >= status.steps_done()) return absl::StrCat("; saved in ", path);
  return absl::StrCat("; the newest checkpoint is of step ", saved, ": ", path);
}

std::string WhereSaved(const JobStatus& status, bool all_there_was) {
  const int64_t saved = NewestCheckpoint(status);
  if (saved >= 0 && saved >= status.steps_done()) return NewestSaved(status);
  if (all_there_was) {
    return absl::StrCat("; the state after step ", saved, " is saved in ",
                        status.checkpoints().rbegin()->path());
  }
  return "; it could not be saved" + NewestSaved(status);
}

std::string StepName(JobState state, int64_t steps_done,
                     const TrainingSpec& training) {
  if (state == STARTING) return "its start";
  if (state == RECOVERING) return "its recovery";
  if (steps_done >= LastStep(training)) return "its end";
  return absl::StrCat("step ", steps_done + 1);
}

}  // namespace troupe
