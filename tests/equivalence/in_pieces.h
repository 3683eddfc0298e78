// A job that goes on from another's checkpoint, cut otherwise each time.
#ifndef TROUPE_TESTS_EQUIVALENCE_IN_PIECES_H_
#define TROUPE_TESTS_EQUIVALENCE_IN_PIECES_H_

#include <vector>

#include "proto/job.pb.h"
#include "tests/equivalence/cluster_of_threads.h"
#include "tests/equivalence/same_training.h"
#include "tests/equivalence/tensor_job.h"

namespace troupe {

// Two steps by each cut, in the job's checkpoint directory: every rank of it
// takes the steps of `whole`, the run of the job in one piece.
void ExpectSameInPieces(const JobSpec& job, const std::vector<JobCut>& cuts,
                        const TrainingRun& whole, const Tolerance& tolerance);

}  // namespace troupe

#endif  // TROUPE_TESTS_EQUIVALENCE_IN_PIECES_H_
