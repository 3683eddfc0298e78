#include "scheduler/cluster/run_words.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "scheduler/cluster/policy/copies_left.h"
#include "scheduler/cluster/wait_reason.h"

namespace troupe {
namespace {

// "; its start failed on w0, too", or nothing.
std::string OtherStarts(const Job& job) {
  std::vector<std::string> others;
  for (const auto& [worker, why] : job.failed_on) {
    if (!job.run->ranks.HasWorker(worker)) others.push_back(worker);
  }
  if (others.empty()) return "";
  return absl::StrCat("; its start failed on ", NameList(std::move(others)),
                      ", too");
}

}  // namespace

std::string Place(const Job& job) {
  const Run& run = *job.run;
  // Some run again what another attempt has done; and one that moves trains.
  const int64_t done = run.ranks.all_ready() ? std::min(run.ranks.StepOfAll(),
                                                        job.status.steps_done())
                                             : job.status.steps_done();
  return StepName(job.moves() ? RUNNING : job.status.state(), done,
                  job.plan->job().training());
}

std::string RunAgain(const Job& job) {
  // Some of this run's may have been reported before all ranks were ready.
  const int64_t again = job.run->done_before - job.run->ranks[0].first_step + 1;
  return again <= 0 ? "" : absl::StrCat(", ", again, " run again");
}

std::string WhyFailed(const Job& job) {
  const int32_t most = job.plan->job().recovery().restarts();
  const std::string cause =
      absl::StrCat(job.run->stopped()->cause, OtherStarts(job));
  if (!job.plan->job().has_recovery() || job.status.restarts() < most) {
    return cause;
  }
  return absl::StrCat(cause, "; the job has gone on ", most,
                      most == 1 ? " time" : " times",
                      ", as often as its recovery.restarts allows");
}

bool IsOfRun(const Job& job, const HeldRank& held) {
  return held.run_id().empty() || held.run_id() == job.status.run_id();
}

std::string WhyWithoutRank(const Job& job, const Worker& worker,
                           const HeldRank& held) {
  const RankRef& ref = held.ref();
  if (held.has_ref()) {
    const bool same_job = ref.job() == job.id.value();
    const char* differs = "";
    if (same_job && !IsOfRun(job, held)) {
      differs = ", of another run of that number";
    } else if (same_job && held.fingerprint() != job.plan->fingerprint()) {
      differs = ", of another plan";
    }
    return absl::StrCat("it has rank ", ref.rank(), " of attempt ",
                        ref.attempt(), " of job ", ref.job(), differs);
  }
  const int64_t pid = worker.status.pid();
  const std::string started_again = absl::StrCat(
      "its process was started again",
      pid == 0 ? "" : absl::StrCat(" (it is process ", pid, " now)"));
  const JobState state = job.status.state();
  const bool in_start =
      state == STARTING || (state == RECOVERING && !job.run->stopping());
  if (!in_start) return started_again;
  return absl::StrCat("it had not heard of attempt ", job.run->attempt, ", or ",
                      started_again);
}

const std::string& WhyItMoves(const Run& run) {
  const std::string& cause = run.stopped()->cause;
  return cause.empty() ? WhyOf(run.intent) : cause;
}

absl::Time TriesAgainAt(const Job& job) {
  return job.run->between()->let_go + job.avoid_pause;
}

std::string WhatItAvoids(const Job& job, const FailedStarts& avoided) {
  if (avoided.empty()) return "";
  std::string text;
  for (const auto& [worker, why] : avoided) {
    absl::StrAppend(&text, "; it does not take ", worker,
                    ", where its start failed: ", why);
  }
  return absl::StrCat(text, WhenItTriesThatAgain(TriesAgainAt(job)),
                      HowToStartThereAgain(avoided));
}

std::string WhyItKeepsItsWorkers(const Job& job) {
  const bool has_directory = job.spec.checkpoint().has_directory();
  const bool keeps =
      CannotBeSaved(job) || (!has_directory && CopiesToSave(job).has_value());
  if (!keeps) return "";
  return absl::StrCat("; it keeps its workers meanwhile, for ",
                      has_directory ? "" : "without a checkpoint.directory ",
                      "its copies of step ",
                      NewestCopies(*job.run)->state().step(),
                      " cannot be saved");
}

}  // namespace troupe
