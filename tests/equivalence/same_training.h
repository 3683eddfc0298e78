// What "trains the same model" means: two runs report the same steps, with
// losses, gradient norms and validation losses that agree to rounding.
#ifndef TROUPE_TESTS_EQUIVALENCE_SAME_TRAINING_H_
#define TROUPE_TESTS_EQUIVALENCE_SAME_TRAINING_H_

#include <vector>

#include "proto/status.pb.h"
#include "tests/equivalence/cluster_of_threads.h"

namespace troupe {

// Sums are taken in another order, and rounded to f32.
inline constexpr double kRelativeError = 1e-5;

// Of one rank's steps, which may begin at any of the reference's.
void ExpectSameSteps(const std::vector<StepRecord>& steps,
                     const std::vector<StepRecord>& reference,
                     double relative_error = kRelativeError);

// The run ended well, every rank of it has taken the steps of the reference's
// first rank, and given its memory back.
void ExpectSameTraining(const TrainingRun& run, const TrainingRun& reference,
                        double relative_error = kRelativeError);

}  // namespace troupe

#endif  // TROUPE_TESTS_EQUIVALENCE_SAME_TRAINING_H_
