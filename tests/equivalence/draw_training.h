// The models and trainings of drawn plans (plan_matrix.h): what all cuts of a
// draw share.
#ifndef TROUPE_TESTS_EQUIVALENCE_DRAW_TRAINING_H_
#define TROUPE_TESTS_EQUIVALENCE_DRAW_TRAINING_H_

#include <cstdint>

#include "proto/job.pb.h"
#include "tests/equivalence/dice.h"

namespace troupe {

inline constexpr int kDrawnLayers = 6;  // eight units

// What is drawn from `dice` stays as it is where the rest, which has streams of
// its own, is drawn otherwise.
JobSpec DrawTraining(uint64_t seed, int number, Dice& dice);

// Whether a group of the optimizer changes whole matrices.
bool TrainsMatrices(const JobSpec& job);

}  // namespace troupe

#endif  // TROUPE_TESTS_EQUIVALENCE_DRAW_TRAINING_H_
