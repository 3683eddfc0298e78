// Rows of the table of kinds (kinds_test.cc) that make a layer of experts.
#ifndef TROUPE_TESTS_WORKER_LAYERS_KINDS_OF_EXPERTS_H_
#define TROUPE_TESTS_WORKER_LAYERS_KINDS_OF_EXPERTS_H_

#include <vector>

#include "tests/worker/layers/one_op.h"

namespace troupe {

std::vector<OneOpSpec> KindsOfExperts();

}  // namespace troupe

#endif  // TROUPE_TESTS_WORKER_LAYERS_KINDS_OF_EXPERTS_H_
