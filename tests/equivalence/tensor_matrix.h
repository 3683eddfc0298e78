// All that is cut inside units, with all else that a plan may be: architecture,
// ranks that a unit is cut over, sequence parallelism, schedule, replicas,
// dropout. A few of them are tests of every build, all of them a command of
// their own (tensor_matrix_main.cc).
#ifndef TROUPE_TESTS_EQUIVALENCE_TENSOR_MATRIX_H_
#define TROUPE_TESTS_EQUIVALENCE_TENSOR_MATRIX_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/equivalence/reference_runs.h"
#include "tests/equivalence/tensor_job.h"

namespace troupe {

struct TensorConfiguration {
  std::string architecture;
  // Tables are tied where there is some, so that either sort meets all cuts.
  double dropout = 0;
  JobCut cut;

  // "llama, tensor 4, sequence, zb_v, data 2, dropout".
  std::string name() const;
};

// Every synchronous schedule on two stages, and no pipeline.
std::vector<TensorConfiguration> TensorMatrix();

// Trains one beside the single rank.
absl::StatusOr<TrainingDifference> TrainBesideOneRank(
    const TensorConfiguration& configuration, ReferenceRuns& references);

}  // namespace troupe

#endif  // TROUPE_TESTS_EQUIVALENCE_TENSOR_MATRIX_H_
