#include "scheduler/cluster/late_watch.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/plan/find_program.h"
#include "scheduler/cluster/rank_view.h"

namespace troupe {
namespace {

struct StepInProgress {
  int64_t step = 0;
  absl::Duration time;
};

// The step that some rank has been in for longest.
StepInProgress LongestStep(const Job& job, absl::Time now) {
  const Run& run = *job.run;
  StepInProgress longest;
  for (const RankReport& report : run.reports) {
    if (report.progress.program() != StepKind(job.plan->job())) continue;
    const absl::Duration time = std::min(
        absl::Seconds(report.progress.step_seconds()) + (now - report.heard),
        now - run.outside_step);
    if (time <= longest.time) continue;
    longest = {.step = report.progress.step(), .time = time};
  }
  return longest;
}

}  // namespace

void LateWatch::Hear(Job& job, const RankProgress& progress,
                     absl::Time now) const {
  if (progress.lanes_size() > job.plan->lanes_size()) return;
  const int rank = progress.ref().rank();
  RankReport& report = job.run->reports[rank];
  if (DiskGotOn(report.progress, progress)) {
    job.run->GotOn(rank, now);
    job.run->disk_progress = report.disk_moved = now;
  }
  report.progress = progress;
  report.heard = now;
  if (progress.program() != StepKind(job.plan->job())) {
    job.run->outside_step = now;
  }
}

// A step that is over is no longer in progress, whatever the heartbeat before
// said. One that is reported late is over for long.
void LateWatch::HearStep(Job& job, const StepReport& step,
                         absl::Time now) const {
  RankReport& report = job.run->reports[step.ref().rank()];
  if (step.record().step() < report.progress.step()) return;
  report.progress = RankProgress();
  report.progress.set_step(step.record().step());
  report.heard = now;
}

Waits LateWatch::WaitsOf(const Job& job, absl::Time now) const {
  return WhoWaits(*job.plan, job.run->reports,
                  {.now = now, .silent_after = 2.5 * limits_.heartbeat});
}

std::string LateWatch::WaitersFor(const Job& job, int rank,
                                  absl::Time now) const {
  const Waits waits = WaitsOf(job, now);
  const Culprit silent = {.rank = rank, .silent = true};
  const bool to_blame = std::find(waits.culprits.begin(), waits.culprits.end(),
                                  silent) != waits.culprits.end();
  if (!to_blame || waits.waiters.empty()) return "";
  return absl::StrCat("; ", absl::StrJoin(waits.waiters, "; "));
}

void LateWatch::CheckStep(Job& job, absl::Time now, Actions& actions) {
  Run& run = *job.run;
  auto* const training = run.in<phase::Training>();
  if (training == nullptr) return;
  const StepInProgress longest = LongestStep(job, now);
  LateStep& late = training->late;
  const bool is_late = longest.time > run.deadline.late_after();
  if (late.step != 0 && (!is_late || longest.step != late.step)) {
    AddLateEvent(job, *training,
                 absl::StrCat("step ", late.step, " went on after ",
                              SecondsWords(late.time)),
                 now, actions);
    jobs_.SetWaitReason(job, "", actions);
    late = LateStep();
  }
  if (!is_late) return;
  late.step = longest.step;
  late.time = longest.time;
  if (now - late.looked < limits_.late_look_every) return;
  late.looked = now;
  SayLate(job, *training, now, actions);
}

void LateWatch::SayLate(Job& job, phase::Training& training, absl::Time now,
                        Actions& actions) {
  LateStep& late = training.late;
  const Waits waits = WaitsOf(job, now);
  const std::string who = waits.Text();
  const std::string text =
      absl::StrCat("step ", late.step, " is late (", SecondsWords(late.time),
                   ", ", SecondsWords(job.run->deadline.expected()),
                   " expected)", who.empty() ? "" : ": ", who);
  jobs_.SetWaitReason(job, text, actions);
  // The same ranks may do other things by now: that is in the reason only.
  const bool first = late.said == absl::InfinitePast();
  const bool changed = waits.culprits != late.culprits;
  if (!first && (!changed || now - late.said < limits_.late_say_every)) return;
  late.said = now;
  late.culprits = waits.culprits;
  AddLateEvent(job, training, text, now, actions);
}

void LateWatch::AddLateEvent(Job& job, phase::Training& training,
                             const std::string& text, absl::Time now,
                             Actions& actions) {
  if (++training.late_events > limits_.late_events_max) return;
  jobs_.AddEvent(job, text, now, actions);
}

}  // namespace troupe
