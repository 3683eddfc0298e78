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
  // The job with these numbers of micro-batches a step, of each replica.
  JobSpec fewer;
  JobSpec more;
  int fewer_count = 0;
  int more_count = 0;
  int count = 0;  // the job's own

  // Of the job, what is so much with fewer and so much with more.
  double At(double with_fewer, double with_more) const;
};

// How long a step's plan is.
struct StepLength {
  int pipeline = 1;       // ranks
  int micro_batches = 1;  // of all kinds of replicas, which have each their own
  bool is_even = true;    // replicas have equally many: else none is shorter
  int64_t of_micro_batch = 0;  // instructions
  int64_t of_step = 0;         // beside: what does not grow with micro-batches
  int64_t with(int count) const { return of_step + count * of_micro_batch; }
};

// The micro-batches of two shorter steps, which fill its pipeline twice and
// three times, or, where the longer one would have more than kLongMax
// instructions, once and twice: that tells less exactly, but as much of all
// candidates that are as long. nullopt: the step itself has at most
// `instructions_max`, or is not longer than these.
struct TwoSteps {
  int fewer = 0;
  int more = 0;
};
inline constexpr int64_t kLongMax = 60'000;
absl::optional<TwoSteps> ShorterSteps(const StepLength& length,
                                      int64_t instructions_max);
// Of what is planned then.
int64_t InstructionsToCompare(const StepLength& length,
                              int64_t instructions_max);

// As ShorterSteps says. nullopt, too, where replicas differ in their
// micro-batches. InvalidArgument: the job cannot be planned.
absl::StatusOr<absl::optional<ShortSteps>> ShortStepsOf(
    const JobSpec& job, int64_t instructions_max);

// The job's prediction from those of both.
Prediction PredictionAt(const ShortSteps& steps, const Prediction& fewer,
                        Prediction more);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PLANNER_SHORT_STEPS_H_
