// How far apart two checkpoints are.
#ifndef TROUPE_TESTS_EQUIVALENCE_STATE_DIFFERENCE_H_
#define TROUPE_TESTS_EQUIVALENCE_STATE_DIFFERENCE_H_

#include <string>

namespace troupe {

// Norm-wise: the root of all squared differences, over that of the squares of
// what is wanted.
struct StateDifference {
  double weights = 0;
  double moments = 0;  // of the optimizer
};
// CHECKs that both directories hold checkpoints of one model.
StateDifference CompareStates(const std::string& got, const std::string& want);

}  // namespace troupe

#endif  // TROUPE_TESTS_EQUIVALENCE_STATE_DIFFERENCE_H_
