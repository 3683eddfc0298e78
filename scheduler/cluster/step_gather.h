// Makes one record of a step from the reports of all ranks: the step is as slow
// as its slowest rank, waited for a checkpoint as long as the rank that waited
// longest, and uses the memory of the rank that uses most; between tiers of
// memory moved what all ranks moved (proto/plan/tier_traffic.h); loss, gradient
// norm and learning rate are the same on all and taken from rank 0, or, where
// they are not (compare_scalars.h), from the first of most. Islands train by
// themselves (proto/plan/islands.h): ranks of one are compared, and loss and
// norm are the means of all. Tokens/s and MFU follow from the slowest rank's
// time. Records come out in the order of their steps, each once, when the last
// rank has reported it.
//
// After a restart of the scheduler the reports that are not known to be stored
// come again, of one rank long before those of another: then a step waits for
// all ranks that still run, unless each of them has gone past it.
//
// Timelines are large, so of a large job only kTracedRanksMax ranks, evenly
// spread with rank 0 among them, are asked for theirs.
#ifndef TROUPE_SCHEDULER_CLUSTER_STEP_GATHER_H_
#define TROUPE_SCHEDULER_CLUSTER_STEP_GATHER_H_

#include <map>
#include <optional>
#include <vector>

#include "proto/plan.pb.h"
#include "proto/plan/lanes.h"
#include "proto/plan/sums.h"
#include "proto/plan/traced_ranks.h"
#include "proto/status.pb.h"
#include "proto/timeline.pb.h"
#include "proto/worker.pb.h"
#include "scheduler/cluster/compare_scalars.h"
#include "scheduler/cluster/expert_loads.h"

namespace troupe {

struct GatheredStep {
  StepRecord record;
  // Of the traced ranks, where all of them traced the step.
  std::optional<Timeline> timeline;
  std::optional<ScalarDifference> difference;
  std::optional<ExpertLoads::Point> experts;  // of a model that has some
};

struct OpenDifference {
  int64_t step = 0;
  ScalarDifference difference;
};

class StepGather {
 public:
  // `plan` gives the lanes, the sums, the tokens of a step and the peak rate;
  // it is not kept.
  StepGather(int ranks, const Plan& plan);

  // The steps that this report completes. A report of a step that is past, or a
  // second one of a rank, is dropped. More than kStepsOpenMax steps are never
  // open, and where islands train by themselves as many more as they do so:
  // past that the oldest comes out as it is.
  std::vector<GatheredStep> Add(const StepReport& report);
  // The open steps up to this one, as they are.
  std::vector<GatheredStep> CloseThrough(int64_t step);
  // Of the open steps, the first in which ranks have reported what differs.
  std::optional<OpenDifference> FirstDifference() const;
  // Drops what comes of steps up to this one.
  void StartAfter(int64_t step) { last_ = step; }

  static constexpr int kStepsOpenMax = 64;
  static constexpr int kStepsOpenAgainMax = 1 << 18;  // after a restart

  // What is known after a restart. Before the first Add: all steps up to this
  // one came out, and ranks have ended, each after having reported the steps in
  // `ended`; they may report them again.
  void Resume(int64_t last, std::map<int, int64_t> ended);

  // The last step that came out; -1: none.
  int64_t last() const { return last_; }

 private:
  using Reports = std::map<int, StepReport>;  // by rank
  struct Open {
    Reports reports;
  };
  // Of the first island whose ranks have reported what differs.
  std::optional<ScalarDifference> DifferenceIn(const Reports& reports) const;
  // Loss and norm of the islands that have reported.
  void TakeMeans(const Reports& reports, int agreed, StepRecord& record) const;
  GatheredStep Close(int64_t step, const Open& open) const;
  // Whether the oldest open step comes out.
  bool IsDue() const;

  const int ranks_;
  const int ranks_of_island_;
  const size_t open_max_;
  bool resumed_ = false;           // after a restart
  std::map<int, int64_t> ended_;   // resumed: by rank, the last of ended ones
  std::map<int, int64_t> newest_;  // resumed: by rank, the last it reported
  const Lanes lanes_;
  const Sums sums_;  // that are reported
  const double tokens_per_step_;
  const double flops_per_token_;
  const double peak_flops_;
  int64_t last_ = -1;  // the last step that came out
  std::map<int64_t, Open> open_;
};

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_CLUSTER_STEP_GATHER_H_
