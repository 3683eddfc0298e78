// data.sample: the text that a job writes after each validation.
#ifndef TROUPE_SCHEDULER_PLANNER_RESOLVE_SAMPLE_H_
#define TROUPE_SCHEDULER_PLANNER_RESOLVE_SAMPLE_H_

#include "absl/status/status.h"
#include "proto/job.pb.h"

namespace troupe {

// Fills in what a sample leaves out. InvalidArgument "data.sample...": a value
// that cannot be, or a job that writes no text or validates nothing. REQUIRES
// that model, data and training are resolved.
absl::Status ResolveSample(JobSpec& job);

// InvalidArgument "data.sample...": ranks share the model in a way in which
// they cannot write a text (lay_decoding.h). REQUIRES that nothing of the job
// is left to choose.
absl::Status CheckSample(const JobSpec& job);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PLANNER_RESOLVE_SAMPLE_H_
