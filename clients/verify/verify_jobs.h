// The two jobs that `troupe verify` runs: the user's, cut short, and the same
// on one rank. Both save their last two steps, for compare.h.
#ifndef TROUPE_CLIENTS_VERIFY_VERIFY_JOBS_H_
#define TROUPE_CLIENTS_VERIFY_VERIFY_JOBS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "proto/job.pb.h"
#include "proto/plan.pb.h"

namespace troupe {

struct VerifyOptions {
  int64_t steps = 3;  // N, at least 1; a shorter job's steps are all compared
  std::string directory;  // where both save; the workers and we see it
};

struct VerifyJobs {
  JobSpec run;        // the job's own plan
  JobSpec reference;  // one rank
};

// InvalidArgument, beginning with a field's path, for a job that trains
// nothing: it evaluates, or its model computes nothing.
absl::Status CheckVerifiable(const JobSpec& job);
// The same, for a plan that is not meant to train what one rank trains: its
// schedule delays gradients.
absl::Status CheckTrainsAsOneRank(const Plan& plan);

// Data and seed stay the job's, and so do learning rates without the warm-up:
// at its first rates weights all but stay where they are, and a plan that uses
// old ones would look like the reference. Both do the first N steps
// (training.stop_after), from the job's first weights, and resume from nothing.
VerifyJobs MakeVerifyJobs(const JobSpec& job, const VerifyOptions& options);

}  // namespace troupe

#endif  // TROUPE_CLIENTS_VERIFY_VERIFY_JOBS_H_
