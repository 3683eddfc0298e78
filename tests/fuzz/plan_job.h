// What a scheduler does with a job that somebody sent, as far as its plan.
#ifndef TROUPE_TESTS_FUZZ_PLAN_JOB_H_
#define TROUPE_TESTS_FUZZ_PLAN_JOB_H_

#include "proto/job.pb.h"

namespace troupe {

// Resolves the job, twice, and compiles it for four workers where
// its plan would be short.
void PlanJob(const JobSpec& job);

}  // namespace troupe

#endif  // TROUPE_TESTS_FUZZ_PLAN_JOB_H_
