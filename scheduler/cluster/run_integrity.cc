#include <algorithm>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "proto/base/one_line.h"
#include "scheduler/cluster/compare_scalars.h"
#include "scheduler/cluster/effects.h"
#include "scheduler/cluster/run_control.h"

namespace troupe {
namespace {

constexpr const char* kWhyWrong =
    "; all ranks hold the same to the bit where memory and processor are "
    "sound: test those of ";

}  // namespace

// The part of RunControl that acts where ranks do not hold the same
// (compare_scalars.h): the attempt fails, and the worker that is known to be
// wrong is cordoned: it gets no rank of this job or another, until a person
// says otherwise.

void RunControl::CheckAgreement(Job& job, const GatheredStep& step,
                                absl::Time now, Actions& actions) {
  if (!step.difference.has_value()) return;
  const std::string said =
      Distrust(job, step.record.step(), *step.difference, actions);
  Fail(job, Blame::kRank, said, now, actions);
}

// The attempt has failed for another reason before all had reported the step.
// That is said, too, and where there is no better reason it is this one.
std::string RunControl::CheckOpenSteps(Job& job, absl::Time now,
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

std::string RunControl::Distrust(Job& job, int64_t in_step,
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

}  // namespace troupe
