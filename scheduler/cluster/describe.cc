#include "scheduler/cluster/describe.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "scheduler/cluster/placement.h"

namespace troupe {

ListJobsResponse ListJobs(const Cluster& cluster) {
  ListJobsResponse list;
  const auto& jobs = cluster.jobs().all();
  for (auto it = jobs.rbegin(); it != jobs.rend(); ++it) {
    *list.add_jobs() = it->second->status;
  }
  return list;
}

absl::StatusOr<JobDescription> DescribeJob(const Cluster& cluster, JobId id,
                                           const DescribeOptions& options) {
  ASSIGN_OR_RETURN(const Job* job, cluster.FindJob(id));
  JobDescription description;
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
  return description;
}

absl::StatusOr<GetTimelineResponse> TimelineOf(const Cluster& cluster,
                                               JobId id) {
  ASSIGN_OR_RETURN(const Job* job, cluster.FindJob(id));
  if (job->measured == nullptr && job->predicted == nullptr) {
    return absl::NotFoundError(absl::StrCat(
        "no step of job ", id.value(), " has been traced or predicted since ",
        "the scheduler started"));
  }
  GetTimelineResponse response;
  if (job->measured) *response.mutable_measured() = *job->measured;
  if (job->predicted) *response.mutable_predicted() = *job->predicted;
  return response;
}

ListWorkersResponse ListWorkers(const Cluster& cluster) {
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
  ListWorkersResponse list;
  for (const Worker* worker : workers) *list.add_workers() = worker->status;
  return list;
}

}  // namespace troupe
