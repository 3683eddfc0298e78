// The rows of the table of kinds that are of adapters: LOW_RANK.
#ifndef TROUPE_TESTS_WORKER_LAYERS_KINDS_OF_ADAPTERS_H_
#define TROUPE_TESTS_WORKER_LAYERS_KINDS_OF_ADAPTERS_H_

#include <vector>

#include "tests/worker/layers/one_op.h"

namespace troupe {

std::vector<OneOpSpec> KindsOfAdapters();

}  // namespace troupe

#endif  // TROUPE_TESTS_WORKER_LAYERS_KINDS_OF_ADAPTERS_H_
