// What "trains the same model" means: two runs report the same steps, with
// losses, gradient norms and validation losses that agree to rounding.
#ifndef TROUPE_TESTS_EQUIVALENCE_SAME_TRAINING_H_
#define TROUPE_TESTS_EQUIVALENCE_SAME_TRAINING_H_

#include <vector>

#include "proto/job.pb.h"
#include "proto/status.pb.h"
#include "tests/equivalence/cluster_of_threads.h"

namespace troupe {

// The run of a job that is cut nowhere; trained once for all that ask.
const TrainingRun& OneRank(const JobSpec& job);

// Sums are taken in another order, and rounded to f32.
inline constexpr double kRelativeError = 1e-5;

// Of losses, and of gradient norms, which differ by more where every value
// within a unit is a sum that is taken in another order.
struct Tolerance {
  Tolerance(double all) : losses(all), norms(all) {}  // NOLINT: implicit
  Tolerance(double losses_in, double norms_in)
      : losses(losses_in), norms(norms_in) {}
  double losses;
  double norms;
};

// The largest of any step of any rank, relative to the reference's first rank;
// infinite where something is no number. CHECKs that both took the same steps.
struct StepDifference {
  double losses = 0;  // of validation too
  double norms = 0;   // of gradients
};
StepDifference FurthestApart(const TrainingRun& run,
                             const TrainingRun& reference);

// Of one rank's steps, which may begin at any of the reference's.
void ExpectSameSteps(const std::vector<StepRecord>& steps,
                     const std::vector<StepRecord>& reference,
                     const Tolerance& tolerance = kRelativeError);

// The run ended well, every rank of it has taken the steps of the reference's
// first rank, and given its memory back.
void ExpectSameTraining(const TrainingRun& run, const TrainingRun& reference,
                        const Tolerance& tolerance = kRelativeError);

// Each of these plans of one job takes one step and saves; the next one
// continues. All together take the steps of the run that never stops.
void ExpectResumesThrough(const std::vector<JobSpec>& plans,
                          const TrainingRun& reference,
                          const Tolerance& tolerance = kRelativeError);

}  // namespace troupe

#endif  // TROUPE_TESTS_EQUIVALENCE_SAME_TRAINING_H_
