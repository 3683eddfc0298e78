// For simulations of plans of a synthetic model: what the model says of passes,
// and nothing for all else.
#ifndef TROUPE_TESTS_GOLDEN_GIVEN_TIMES_H_
#define TROUPE_TESTS_GOLDEN_GIVEN_TIMES_H_

#include <cstdint>

#include "proto/plan.pb.h"
#include "proto/program.pb.h"

namespace troupe {

// Nanoseconds.
int64_t GivenTime(const Plan& plan, const Instruction& instruction);

}  // namespace troupe

#endif  // TROUPE_TESTS_GOLDEN_GIVEN_TIMES_H_
