// What the cluster looks like from outside, as the messages of scheduler.proto
// and status.proto: one place for the RPCs and the status page alike.
#ifndef TROUPE_SCHEDULER_CLUSTER_DESCRIBE_H_
#define TROUPE_SCHEDULER_CLUSTER_DESCRIBE_H_

#include "absl/status/statusor.h"
#include "proto/base/ids.h"
#include "proto/scheduler.pb.h"
#include "proto/status.pb.h"
#include "scheduler/cluster/cluster.h"

namespace troupe {

// Newest first.
ListJobsResponse ListJobs(const Cluster& cluster);

struct DescribeOptions {
  bool steps = true;
};

// NOT_FOUND. A job that has not started has a plan with its `job` only.
absl::StatusOr<JobDescription> DescribeJob(const Cluster& cluster, JobId id,
                                           const DescribeOptions& options = {});

// NOT_FOUND: no such job, or it has neither a measured nor a predicted one.
absl::StatusOr<GetTimelineResponse> TimelineOf(const Cluster& cluster,
                                               JobId id);

// Live ones first, in the natural order of their names.
ListWorkersResponse ListWorkers(const Cluster& cluster);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_CLUSTER_DESCRIBE_H_
