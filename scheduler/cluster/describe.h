// What the cluster looks like from outside, as the messages of scheduler.proto
// and status.proto: one place for the RPCs and the status page alike.
//
// A list of all workers, or the curve of a long job, takes long to copy. So
// each function looks several times at what is large, a part at a time, and
// events come in between: what it tells of a cluster that fits in one part is
// of one moment.
#ifndef TROUPE_SCHEDULER_CLUSTER_DESCRIBE_H_
#define TROUPE_SCHEDULER_CLUSTER_DESCRIBE_H_

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "proto/base/ids.h"
#include "proto/scheduler.pb.h"
#include "proto/status.pb.h"
#include "scheduler/cluster/cluster.h"
#include "scheduler/cluster/host.h"

namespace troupe {

// Shows the cluster to one that looks at a part of it, and is called again for
// the next one.
using Look = absl::FunctionRef<void(const Cluster& cluster)>;
using ShowCluster = absl::FunctionRef<void(Look look)>;

// Under the host's lock, each time.
class ShownByHost {
 public:
  explicit ShownByHost(const ClusterHost& host) : host_(host) {}
  void operator()(Look look) const {
    host_.Read([&](const Cluster& cluster, absl::Time) { look(cluster); });
  }

 private:
  const ClusterHost& host_;
};

// Each fills an empty message, which may lie on an arena: those of a large
// cluster have many parts.

// Newest first.
void ListJobs(ShowCluster show, ListJobsResponse& list);

struct DescribeOptions {
  bool steps = true;
};

// NOT_FOUND. A job that has not started has a plan with its `job` only. Steps
// that come while it looks are left out.
absl::Status DescribeJob(ShowCluster show, JobId id,
                         const DescribeOptions& options,
                         JobDescription& description);

// NOT_FOUND: no such job; it has neither a measured nor a predicted one; or
// there is no trace of the step that is asked for (0: of the last traced one).
absl::Status TimelineOf(ShowCluster show, const GetTimelineRequest& request,
                        GetTimelineResponse& timelines);

// Live ones first, in the natural order of their names.
void ListWorkers(ShowCluster show, ListWorkersResponse& list);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_CLUSTER_DESCRIBE_H_
