// All that is cut inside units, with all else that a plan may be: architecture,
// ranks that a unit is cut over, sequence parallelism, schedule, replicas,
// dropout. A few of them are tests of every build, all of them a command of
// their own (tensor_matrix_main.cc).
#ifndef TROUPE_TESTS_EQUIVALENCE_TENSOR_MATRIX_H_
#define TROUPE_TESTS_EQUIVALENCE_TENSOR_MATRIX_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/equivalence/cluster_of_threads.h"
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

// The furthest that a run is from the single rank's: of any step of any rank,
// and of the weights after the last one, norm-wise.
struct TrainingDifference {
  double losses = 0;
  double norms = 0;  // of gradients
  double weights = 0;

  bool IsRounding() const;
};

// Trains configurations beside single ranks, whose runs it keeps.
class BesideOneRank {
 public:
  // `directory` is this object's own, for checkpoints.
  explicit BesideOneRank(std::string directory);
  ~BesideOneRank();

  // Errors of the training; Internal where memory was not given back.
  absl::StatusOr<TrainingDifference> Train(
      const TensorConfiguration& configuration);

 private:
  struct Reference {
    TrainingRun run;
    std::string checkpoint;
  };
  const Reference& OneRank(const JobSpec& job);

  const std::string directory_;
  std::map<std::string, Reference> references_;  // by job
};

}  // namespace troupe

#endif  // TROUPE_TESTS_EQUIVALENCE_TENSOR_MATRIX_H_
