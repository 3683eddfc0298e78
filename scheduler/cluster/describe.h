// What the cluster looks like from outside, as the messages of scheduler.proto
// and status.proto: one place for the RPCs and the status page alike.
#ifndef TROUPE_SCHEDULER_CLUSTER_DESCRIBE_H_
#define TROUPE_SCHEDULER_CLUSTER_DESCRIBE_H_

#include "absl/status/status.h"
#include "proto/base/ids.h"
#include "proto/scheduler.pb.h"
#include "proto/status.pb.h"
#include "scheduler/cluster/cluster.h"

namespace troupe {

// Each fills an empty message, which may lie on an arena: those of a large
// cluster have many parts.

// Newest first.
void ListJobs(const Cluster& cluster, ListJobsResponse& list);

struct DescribeOptions {
  bool steps = true;
};

// NOT_FOUND. A job that has not started has a plan with its `job` only.
absl::Status DescribeJob(const Cluster& cluster, JobId id,
                         const DescribeOptions& options,
                         JobDescription& description);

// NOT_FOUND: no such job; it has neither a measured nor a predicted one; or
// there is no trace of the step that is asked for (0: of the last traced one).
absl::Status TimelineOf(const Cluster& cluster,
                        const GetTimelineRequest& request,
                        GetTimelineResponse& timelines);

// Live ones first, in the natural order of their names.
void ListWorkers(const Cluster& cluster, ListWorkersResponse& list);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_CLUSTER_DESCRIBE_H_
