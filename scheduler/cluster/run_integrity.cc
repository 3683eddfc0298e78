#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "scheduler/cluster/compare_scalars.h"
#include "scheduler/cluster/run_control.h"

namespace troupe {
namespace {

constexpr const char* kWhyWrong =
    "; all ranks hold the same to the bit where memory and processor are "
    "sound: test those of ";

}  // namespace

// The part of RunControl that acts where ranks do not hold the same
// (compare_scalars.h): the attempt fails, and the job goes on without the
// worker that is known to be wrong.

void RunControl::CheckAgreement(Job& job, const GatheredStep& step,
                                absl::Time now, Actions& actions) {
  Run& run = *job.run;
  const int64_t in_step = step.record.step();
  if (!step.difference.has_value()) {
    // Each rank keeps two copies: by then both are of steps that agreed.
    const int64_t twice =
        2 * std::max<int64_t>(1, job.plan->prediction().keep_every());
    if (run.wrong_since <= in_step - twice) run.wrong_since = kNeverWrong;
    return;
  }
  const ScalarDifference& difference = *step.difference;
  // What comes of it is no better: copies of earlier steps are.
  run.wrong_since = std::min(run.wrong_since, in_step);
  const std::string other =
      run.ranks[difference.others].Name(difference.others);
  const std::string agreed =
      run.ranks[difference.agreed].Name(difference.agreed);
  if (difference.wrong.empty()) {
    return Fail(job, Blame::kRank,
                absl::StrCat(other, " and ", agreed, " differ in step ",
                             in_step, ": rank ", difference.others, " has ",
                             difference.what, kWhyWrong, "both hosts"),
                now, actions);
  }
  for (const int rank : difference.wrong) {
    RankSeat& seat = run.ranks[rank];
    seat.wrong = true;
    run.wrong_workers.insert(seat.worker_name);
  }
  Fail(job, Blame::kRank,
       absl::StrCat(other, " is wrong in step ", in_step, ": it has ",
                    difference.what, kWhyWrong, "its host"),
       now, actions);
}

}  // namespace troupe
