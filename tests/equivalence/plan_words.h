// A job and a cut of it in one line, for tests of plans that are drawn.
#ifndef TROUPE_TESTS_EQUIVALENCE_PLAN_WORDS_H_
#define TROUPE_TESTS_EQUIVALENCE_PLAN_WORDS_H_

#include <string>

#include "proto/job.pb.h"

namespace troupe {

// "tensor 2 sequence, data 4, expert 2, zero 1, 1f1b 2, micro-batch 1, ...".
std::string CutText(const JobSpec& cut);

// "f32", "bf16", "fp16", "bf16, gradients too".
std::string PrecisionText(const TrainingSpec& training);

// "f32, mixtral, tied, dropout, clipping 0.5, batch 8, validated".
std::string TrainingText(const JobSpec& job);

}  // namespace troupe

#endif  // TROUPE_TESTS_EQUIVALENCE_PLAN_WORDS_H_
