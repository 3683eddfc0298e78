// What tests share whose ranks are squares or cubes: they cut the sequences of
// a micro-batch.
#ifndef TROUPE_TESTS_EQUIVALENCE_BLOCKS_OF_RANKS_H_
#define TROUPE_TESTS_EQUIVALENCE_BLOCKS_OF_RANKS_H_

#include <string>
#include <vector>

#include "proto/job.pb.h"
#include "tests/equivalence/tensor_job.h"

namespace troupe {

// Micro-batches of four sequences; a few steps.
JobSpec BlocksJob(const std::string& architecture, bool tied, double dropout);

// The cut trains what one rank trains, and one rank learns.
void ExpectTrainsTheSameModel(const JobSpec& job, const JobCut& cut);

// With recomputation, selective and full, bit by bit the same.
void ExpectSameRecomputed(const JobCut& cut);

// A llama is trained in turns by cuts, as in one piece; `folder` of its
// checkpoints.
void ExpectResumedByOthers(const std::vector<JobCut>& cuts,
                           const std::string& folder);

}  // namespace troupe

#endif  // TROUPE_TESTS_EQUIVALENCE_BLOCKS_OF_RANKS_H_
