// Jobs that train the same model as a reference does, whichever way they are
// cut: how far they are from it. References are trained once and kept.
#ifndef TROUPE_TESTS_EQUIVALENCE_REFERENCE_RUNS_H_
#define TROUPE_TESTS_EQUIVALENCE_REFERENCE_RUNS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/job.pb.h"
#include "tests/equivalence/cluster_of_threads.h"
#include "tests/storage/temp_dir.h"

namespace troupe {

// The furthest that a run is from its reference: of any step of any rank, and
// of the weights after the last one, norm-wise.
struct TrainingDifference {
  double losses = 0;
  double norms = 0;  // of gradients
  double weights = 0;

  // Where what the reference computes in takes it that far from f32. Both may
  // be that far from there, each on its own side.
  bool IsRounding(const TrainingDifference& from_f32) const;
  bool IsRounding() const { return IsRounding({}); }
};

// A job from where the one before it stopped, up to and including this step.
struct Leg {
  JobSpec job;
  int64_t until = 0;
};

class ReferenceRuns {
 public:
  // How far the legs are from the reference, which takes as many steps. Errors
  // of the training; Internal where memory was not given back. CHECKs that all
  // of them compile, and that the reference trains.
  absl::StatusOr<TrainingDifference> Compare(const std::vector<Leg>& legs,
                                             const JobSpec& reference);

  // How far what the reference computes in takes such a training from f32: the
  // reference, and the same with other seeds. CHECKs that all train.
  TrainingDifference FromF32(const JobSpec& reference);

 private:
  struct Reference {
    TrainingRun run;
    std::string checkpoint;
  };
  const Reference& Of(const JobSpec& job);
  TrainingDifference OneFromF32(const JobSpec& reference);

  const TempDir directory_;                      // for checkpoints
  std::map<std::string, Reference> references_;  // by job
};

}  // namespace troupe

#endif  // TROUPE_TESTS_EQUIVALENCE_REFERENCE_RUNS_H_
