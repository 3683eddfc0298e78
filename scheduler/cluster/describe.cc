#include "scheduler/cluster/describe.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "scheduler/cluster/placement.h"

namespace troupe {

void ListJobs(const Cluster& cluster, ListJobsResponse& list) {
  const auto& jobs = cluster.jobs().all();
  for (auto it = jobs.rbegin(); it != jobs.rend(); ++it) {
    *list.add_jobs() = it->second->status;
  }
}

absl::Status DescribeJob(const Cluster& cluster, JobId id,
                         const DescribeOptions& options,
                         JobDescription& description) {
  ASSIGN_OR_RETURN(const Job* job, cluster.FindJob(id));
  *description.mutable_status() = job->status;
  if (job->plan) {
    *description.mutable_plan() = *job->plan;
  } else {
    *description.mutable_plan()->mutable_job() = job->spec;
  }
  if (options.steps) {
    description.mutable_steps()->Add(job->steps.begin(), job->steps.end());
  }
  description.mutable_events()->Add(job->events.begin(), job->events.end());
  return absl::OkStatus();
}

absl::Status TimelineOf(const Cluster& cluster, JobId id,
                        GetTimelineResponse& timelines) {
  ASSIGN_OR_RETURN(const Job* job, cluster.FindJob(id));
  if (job->measured == nullptr && job->predicted == nullptr) {
    return absl::NotFoundError(absl::StrCat(
        "no step of job ", id.value(), " has been traced or predicted since ",
        "the scheduler started"));
  }
  if (job->measured) *timelines.mutable_measured() = *job->measured;
  if (job->predicted) *timelines.mutable_predicted() = *job->predicted;
  return absl::OkStatus();
}

void ListWorkers(const Cluster& cluster, ListWorkersResponse& list) {
  std::vector<const Worker*> workers;
  for (const auto& [id, worker] : cluster.workers().all()) {
    workers.push_back(&worker);
  }
  std::sort(workers.begin(), workers.end(),
            [](const Worker* a, const Worker* b) {
              if (a->alive() != b->alive()) return a->alive();
              if (a->name() != b->name()) {
                return NaturalLess(a->name(), b->name());
              }
              return a->id < b->id;
            });
  for (const Worker* worker : workers) *list.add_workers() = worker->status;
}

}  // namespace troupe
