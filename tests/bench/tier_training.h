// What it costs to train a model that rests below the device: steps of one
// worker whose state, or a part of it, rests in the host's memory or on a disk,
// beside steps of the same job in the device's memory, in turns.
#ifndef TROUPE_TESTS_BENCH_TIER_TRAINING_H_
#define TROUPE_TESTS_BENCH_TIER_TRAINING_H_

#include <string>

#include "tests/bench/bench_job.h"

namespace troupe {

struct TierTrainingOptions {
  BenchJobOptions job;
  std::string dir;   // of the nvme tier
  std::string rows;  // only those whose name has it
  int rounds = 5;
};

// Prints a row for each place where something rests. False where the job cannot
// be planned; it says why.
bool TimeTierTraining(const TierTrainingOptions& options);

}  // namespace troupe

#endif  // TROUPE_TESTS_BENCH_TIER_TRAINING_H_
