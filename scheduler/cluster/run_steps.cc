#include "scheduler/cluster/run_steps.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/one_line.h"
#include "proto/plan/machine_pace.h"
#include "scheduler/cluster/compare_scalars.h"
#include "scheduler/cluster/effects.h"

namespace troupe {
namespace {

constexpr const char* kWhyWrong =
    "; all ranks hold the same to the bit where memory and processor are "
    "sound: test those of ";

}  // namespace

void RunSteps::Step(Job& job, const StepReport& report, absl::Time now,
                    Actions& actions) {
  RankSeat& seat = job.run->ranks[report.ref().rank()];
  seat.step = std::max(seat.step, report.record().step());
  job.run->GotOn(report.ref().rank(), now);
  late_.HearStep(job, report, now);
  for (GatheredStep& step : job.run->steps.Add(report)) {
    job.run->deadline.Add(absl::Seconds(step.record.step_seconds()));
    if (const auto pace = PaceOf(*job.run); pace.has_value()) {
      *step.record.mutable_machine() = *pace;
    }
    CheckAgreement(job, step, now, actions);
    AddGathered(job, std::move(step), actions);
  }
  StoreEarlyCommits(job, job.run->steps.last(), now, actions);
}

void RunSteps::AddGathered(Job& job, GatheredStep step, Actions& actions) {
  if (step.timeline.has_value()) jobs_.AddTrace(job, *std::move(step.timeline));
  if (step.experts.has_value()) job.experts.Add(*std::move(step.experts));
  jobs_.AddStep(job, step.record, actions);
}

absl::optional<MachinePace> RunSteps::PaceOf(const Run& run) const {
  std::vector<const WorkerDescription*> machines;
  for (const RankSeat& seat : run.ranks) {
    const Worker* worker = workers_.Find(seat.worker);
    if (worker != nullptr) machines.push_back(&worker->status.description());
  }
  return troupe::PaceOf(machines);
}

// What was reported of steps that will not run again is all that there is.
void RunSteps::CloseSteps(Job& job, Run& run, int64_t resumes_at,
                          Actions& actions) {
  if (resumes_at < 0) resumes_at = NewestCheckpoint(job.status);
  for (GatheredStep& step : run.steps.CloseThrough(resumes_at)) {
    AddGathered(job, std::move(step), actions);
  }
}

void RunSteps::CheckAgreement(Job& job, const GatheredStep& step,
                              absl::Time now, Actions& actions) {
  if (!step.difference.has_value()) return;
  const std::string said =
      Distrust(job, step.record.step(), *step.difference, actions);
  verdicts_.Fail(job, Blame::kRank, said, now, actions);
}

// The attempt has failed for another reason before all had reported the step.
// That is said, too, and where there is no better reason it is this one.
std::string RunSteps::CheckOpenSteps(Job& job, absl::Time now,
                                     Actions& actions) {
  Run& run = *job.run;
  const std::optional<OpenDifference> open = run.steps.FirstDifference();
  if (!open.has_value() || open->step >= run.wrong_since) return "";
  const std::string said =
      OneLine(Distrust(job, open->step, open->difference, actions),
              limits_.reason_bytes_max);
  if (run.stopping()) run.stopped()->Explain(Blame::kRank, said);
  jobs_.AddEvent(job, said, now, actions);
  return said;
}

std::string RunSteps::Distrust(Job& job, int64_t in_step,
                               const ScalarDifference& difference,
                               Actions& actions) {
  Run& run = *job.run;
  // What comes of it is no better: copies of earlier steps are.
  run.wrong_since = std::min(run.wrong_since, in_step);
  const std::string other =
      run.ranks[difference.others].Name(difference.others);
  if (difference.wrong.empty()) {
    const std::string agreed =
        run.ranks[difference.agreed].Name(difference.agreed);
    return absl::StrCat(other, " and ", agreed, " differ in step ", in_step,
                        ": rank ", difference.others, " has ", difference.what,
                        kWhyWrong, "both hosts");
  }
  for (const int rank : difference.wrong) {
    RankSeat& seat = run.ranks[rank];
    seat.wrong = true;
    run.wrong_workers.insert(seat.worker_name);
    // NotFound: it is gone by now, and nothing is kept of it.
    workers_
        .Cordon(seat.worker_name,
                absl::StrCat("it computed wrongly in step ", in_step,
                             " of job ", job.id.value()))
        .status()
        .IgnoreError();
    // It has ended before this was known, and was to stay.
    if (seat.state == RankSeat::kHeld && !seat.awaited()) {
      SendGiveUpKept(job, rank, actions);
      workers_.Release(seat.worker);
      seat.state = RankSeat::kEnded;
      seat.kept.clear();
    }
  }
  return absl::StrCat(other, " is wrong in step ", in_step, ": it has ",
                      difference.what, kWhyWrong, "its host");
}

void RunSteps::Committed(Job& job, const CheckpointCommitted& committed,
                         absl::Time now, Actions& actions) {
  Run& run = *job.run;
  const int64_t step = committed.checkpoint().step();
  if (run.checkpoints.IsCommitted(step)) {
    return SendDone(job, committed.ref().rank(), step, actions);
  }
  run.GotOn(committed.ref().rank(), now);
  CheckpointRecord checkpoint = committed.checkpoint();
  checkpoint.set_attempt(run.attempt);
  run.early_commits[step] = std::move(checkpoint);
  if (!AwaitsSteps(job, now)) return StoreEarlyCommits(job, now, actions);
  StoreEarlyCommits(job, run.steps.last(), now, actions);
}

// After a restart rank 0 may be the first to come back. If the checkpoint that
// it reports again were stored at once, and it were lost together with this
// scheduler, the next one would go on from the checkpoint, and nobody could
// report the steps before it.
bool RunSteps::AwaitsSteps(const Job& job, absl::Time now) const {
  const Run& run = *job.run;
  return now - run.restored <= limits_.adopt_max &&
         std::none_of(run.ranks.begin(), run.ranks.end(),
                      [](const RankSeat& seat) {
                        return seat.state == RankSeat::kLost;
                      });
}

void RunSteps::StoreEarlyCommits(Job& job, int64_t through, absl::Time now,
                                 Actions& actions) {
  Run& run = *job.run;
  auto& early = run.early_commits;
  while (!early.empty() && early.begin()->first <= through) {
    const CheckpointRecord checkpoint = std::move(early.begin()->second);
    const int64_t step = checkpoint.step();
    early.erase(early.begin());
    for (GatheredStep& each : run.steps.CloseThrough(step)) {
      CheckAgreement(job, each, now, actions);
      AddGathered(job, std::move(each), actions);
    }
    if (step >= run.wrong_since || !run.checkpoints.Committed(step)) continue;
    // First, for rank 0 removes older ones when it is told.
    jobs_.AddCheckpoint(job, checkpoint, now, actions);
    for (int rank = 0; rank < static_cast<int>(run.ranks.size()); ++rank) {
      SendDone(job, rank, step, actions);
    }
  }
}

void RunSteps::StoreEarlyCommits(Job& job, absl::Time now, Actions& actions) {
  StoreEarlyCommits(job, std::numeric_limits<int64_t>::max(), now, actions);
}

void RunSteps::SayStored(Job& job, absl::Time now, Actions& actions) {
  Run& run = *job.run;
  if (AwaitsStore(job) || now - run.stored_said < limits_.stored_every) return;
  const bool ready = job.status.state() == RUNNING;
  const int64_t step = run.steps.last();
  if (step <= run.stored_step && ready <= run.stored_ready) return;
  run.stored_said = now;
  run.stored_step = std::max(step, run.stored_step);
  run.stored_ready |= ready;
  Stored stored;
  stored.set_step(std::max<int64_t>(0, step));
  stored.set_ready(ready);
  stored.set_checkpoint(std::max<int64_t>(0, run.checkpoints.committed()));
  for (int rank = 0; rank < static_cast<int>(run.ranks.size()); ++rank) {
    SendStored(job, rank, stored, actions);
  }
}

}  // namespace troupe
