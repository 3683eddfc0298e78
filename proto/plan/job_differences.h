// In what two jobs train differently, as where one resumes what the other has
// saved: any plan may do that, but other settings make it another training.
#ifndef TROUPE_PROTO_PLAN_JOB_DIFFERENCES_H_
#define TROUPE_PROTO_PLAN_JOB_DIFFERENCES_H_

#include <string>
#include <vector>

#include "proto/job.pb.h"

namespace troupe {

// "optimizer.lr is 0.001 there, 0.002 here", in the order of job.proto. Both
// are resolved; what is not set there, as by an older version, is passed over
// unless that says something, as of a model whose positions nothing stretches;
// and so is what changes neither the model nor its losses.
std::vector<std::string> JobDifferences(const JobSpec& there,
                                        const JobSpec& here);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_JOB_DIFFERENCES_H_
