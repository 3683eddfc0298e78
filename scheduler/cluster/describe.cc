#include "scheduler/cluster/describe.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "scheduler/cluster/place_ranks.h"

namespace troupe {
namespace {

absl::StatusOr<const Timeline*> TraceOf(const Job& job, int64_t step) {
  std::string traced;
  for (const auto& timeline : job.measured) {
    if (timeline->step() == step) return timeline.get();
    absl::StrAppend(&traced, traced.empty() ? "" : ", ", timeline->step());
  }
  return absl::NotFoundError(absl::StrCat(
      "job ", job.id.value(), " has no trace of step ", step,
      traced.empty() ? ": no step has been traced yet"
                     : absl::StrCat("; there are those of ", traced)));
}

}  // namespace

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

absl::Status TimelineOf(const Cluster& cluster,
                        const GetTimelineRequest& request,
                        GetTimelineResponse& timelines) {
  ASSIGN_OR_RETURN(const Job* job, cluster.FindJob(JobId(request.id())));
  if (job->measured.empty() && job->predicted == nullptr) {
    return absl::NotFoundError(absl::StrCat(
        "no step of job ", request.id(), " has been traced or predicted since ",
        "the scheduler started",
        job->ended() ? ", or newer jobs have taken the room of its timelines"
                     : ""));
  }
  const Timeline* measured =
      job->measured.empty() ? nullptr : job->measured.back().get();
  if (request.step() != 0) {
    ASSIGN_OR_RETURN(measured, TraceOf(*job, request.step()));
  }
  if (measured != nullptr) *timelines.mutable_measured() = *measured;
  if (job->predicted) *timelines.mutable_predicted() = *job->predicted;
  if (job->plan) *timelines.mutable_stages() = job->plan->stages();
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
  *list.mutable_topology() = cluster.MeasuredPairs();
}

}  // namespace troupe
