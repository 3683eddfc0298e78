#include "scheduler/cluster/run_clock.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "scheduler/cluster/effects.h"
#include "scheduler/cluster/policy/starts_elsewhere.h"
#include "scheduler/cluster/rank_view.h"
#include "scheduler/cluster/run_words.h"

namespace troupe {
namespace {

// The rank whose disk has not got on for longest; -1: none reads or writes.
int SlowestDisk(const Run& run) {
  int slowest = -1;
  for (size_t r = 0; r < run.ranks.size(); ++r) {
    const RankReport& report = run.reports[r];
    if (!run.ranks[r].live() || !report.progress.has_disk()) continue;
    if (slowest < 0 || report.disk_moved < run.reports[slowest].disk_moved) {
      slowest = static_cast<int>(r);
    }
  }
  return slowest;
}

// For a job in which nobody waits for another in a program.
std::string LastHeard(const Run& run, absl::Time now) {
  if (const int slowest = SlowestDisk(run); slowest >= 0) {
    const RankReport& report = run.reports[slowest];
    return EndWords(slowest, report,
                    {.state = RankView::kBetween, .age = now - report.heard});
  }
  const int rank = run.ranks.Laggard();
  const RankSeat& seat = run.ranks[rank];
  return absl::StrCat(
      seat.Name(rank), " is last: it reported step ", seat.step, " ",
      absl::FormatDuration(absl::Trunc(now - seat.heard, absl::Seconds(1))),
      " ago");
}

}  // namespace

std::vector<JobId> RunClock::Unstored(absl::Time now) const {
  std::vector<JobId> unstored;
  for (const auto& [id, job] : jobs_.all()) {
    const bool starts = AwaitsStore(*job);
    if (!starts && !AwaitsCopiesStored(*job)) continue;
    const absl::Time since =
        starts ? job->run->started : job->run->in<phase::SavingCopies>()->since;
    if (now - since > limits_.start_max) unstored.push_back(id);
  }
  return unstored;
}

void RunClock::CheckStart(Job& job, absl::Time now, Actions& actions) {
  const Run& run = *job.run;
  const absl::Time since = std::max(run.started, run.disk_progress);
  if (now - since <= limits_.start_max) return;
  const int slowest = SlowestDisk(run);
  for (size_t r = 0; r < run.ranks.size(); ++r) {
    if (run.ranks[r].state != RankSeat::kStarting) continue;
    const int rank = static_cast<int>(r);
    return verdicts_.Fail(
        job, Blame::kHang,
        absl::StrCat(run.ranks[r].Name(rank), " was not ready within ",
                     absl::FormatDuration(limits_.start_max),
                     slowest < 0 ? "" : "; ",
                     slowest < 0 ? "" : LastHeard(run, now)),
        now, actions);
  }
}

void RunClock::AskTheStoreAgain(Job& job, absl::Time now, Actions& actions) {
  StoreQuestion* const asked = AskedOf(job.run->phase);
  if (asked == nullptr || now - asked->again <= limits_.store_retry) return;
  asked->again = absl::InfiniteFuture();
  AwaitTheStore(job, actions);
}

void RunClock::CheckTime(Job& job, absl::Time now, Actions& actions,
                         std::vector<StuckWorker>& stuck) {
  const Run& run = *job.run;
  if (run.is<phase::SavingCopies>()) {
    return copies_.CheckTime(job, now, actions);
  }
  if (run.stopping()) return CheckStopped(job, now, actions, stuck);
  if (run.ranks.awaits()) return;
  if (job.status.state() == STARTING || job.status.state() == RECOVERING) {
    return CheckStart(job, now, actions);
  }
  if (now - run.progress <= run.hang_max) {
    return late_.CheckStep(job, now, actions);
  }
  FailForHang(job, now, actions);
}

void RunClock::CheckStopped(Job& job, absl::Time now, Actions& actions,
                            std::vector<StuckWorker>& stuck) {
  const Run& run = *job.run;
  const absl::Time stopped = run.stopped()->since;
  // One that saves has time as long as it gets on.
  const absl::Time since =
      run.saving() ? std::max(stopped, run.progress) : stopped;
  const absl::Duration waited = now - since;
  if (!job.ended() && !job.cancelled && waited > limits_.fail_grace &&
      job.status.state() != RECOVERING &&
      !StartsOnceMore(job, workers_, limits_.starts_max)) {
    jobs_.SetState(job, FAILED, WhyFailed(job), now, actions);
  }
  // One that is cancelled finishes its step first, however long that is, but
  // none waits for its peers any more once something is known to be wrong.
  const bool goes_on = (job.cancelled || job.moves()) &&
                       !(run.saving() && run.blame() != Blame::kNone);
  const absl::Duration wait_max =
      goes_on ? std::max(run.hang_max, limits_.stop_max) : limits_.stop_max;
  if (waited <= wait_max) return;
  // Most of them wait for the one that does not get on: they let go when they
  // hear that.
  if (goes_on && run.saving()) return FailForHang(job, now, actions);
  for (const RankSeat& seat : run.ranks) {
    if (!seat.live()) continue;
    stuck.push_back({seat.worker,
                     absl::StrCat("did not let go of job ", job.id.value(),
                                  " within ", absl::FormatDuration(wait_max))});
  }
}

void RunClock::FailForHang(Job& job, absl::Time now, Actions& actions) {
  const Run& run = *job.run;
  std::string who = late_.WaitsOf(job, now).Text();
  if (who.empty()) who = LastHeard(run, now);
  verdicts_.Fail(
      job, Blame::kHang,
      absl::StrCat("no progress for ", absl::FormatDuration(run.hang_max),
                   " in ", Place(job), "; ", who),
      now, actions);
}

}  // namespace troupe
