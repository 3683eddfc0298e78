// A way to share a job whose plan is too long to be one of many that are
// compared: its step is told from two shorter ones. Once a pipeline is full,
// each further micro-batch takes as long as the one before and sends as much,
// so time, bytes and what ranks compute are straight lines through both; memory
// is that of the longer one, which further micro-batches do not need more of.
#ifndef TROUPE_SCHEDULER_PLANNER_SHORT_STEPS_H_
#define TROUPE_SCHEDULER_PLANNER_SHORT_STEPS_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "proto/job.pb.h"
#include "proto/plan.pb.h"

namespace troupe {

struct ShortSteps {
  // The job with so many micro-batches a step, of each replica.
  JobSpec fewer;
  JobSpec more;
  int fewer_count = 0;
  int more_count = 0;
  int count = 0;  // the job's own

  // Of the job, what is so much with fewer and so much with more.
  double At(double with_fewer, double with_more) const;
};

// nullopt: the job's own plan has at most so many instructions, or no shorter
// step fills its pipeline so many times within them. InvalidArgument: the job
// cannot be planned.
absl::StatusOr<absl::optional<ShortSteps>> ShortStepsOf(
    const JobSpec& job, int64_t instructions_max, int fills_min = 2);

// The job's prediction from those of both.
Prediction PredictionAt(const ShortSteps& steps, const Prediction& fewer,
                        Prediction more);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PLANNER_SHORT_STEPS_H_
