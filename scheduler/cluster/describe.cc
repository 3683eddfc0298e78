#include "scheduler/cluster/describe.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "scheduler/cluster/place_ranks.h"

namespace troupe {
namespace {

// What is copied in one look: some milliseconds of the host's lock at most.
constexpr int kStepsAtOnce = JobTable::kWatchStepsMax;
constexpr int kWorkersAtOnce = 512;
// Of jobs, each of which may have some thousand names and checkpoints.
constexpr int kPartsAtOnce = 8192;

int PartsOf(const JobStatus& status) {
  return 8 + status.workers_size() + status.checkpoints_size();
}

using Timelines = std::deque<std::shared_ptr<const Timeline>>;

// That of this step; of the last one where that is 0.
absl::StatusOr<std::shared_ptr<const Timeline>> TraceOf(
    const Timelines& measured, JobId job, int64_t step) {
  if (step == 0) return measured.empty() ? nullptr : measured.back();
  std::string traced;
  for (const auto& timeline : measured) {
    if (timeline->step() == step) return timeline;
    absl::StrAppend(&traced, traced.empty() ? "" : ", ", timeline->step());
  }
  return absl::NotFoundError(absl::StrCat(
      "job ", job.value(), " has no trace of step ", step,
      traced.empty() ? ": no step has been traced yet"
                     : absl::StrCat("; there are those of ", traced)));
}

// Those after `from` up to `until`, some of them; false: there are no more.
bool AddSteps(const Cluster& cluster, JobId id, int64_t from, int64_t until,
              JobDescription& description) {
  const absl::StatusOr<const Job*> job = cluster.FindJob(id);
  if (!job.ok()) return false;  // it has made room for newer ones
  const std::deque<StepRecord>& steps = (*job)->steps;
  const auto after = [&](int64_t step) {
    return std::upper_bound(
        steps.begin(), steps.end(), step,
        [](int64_t s, const StepRecord& record) { return s < record.step(); });
  };
  const auto begin = after(from);
  const auto end = after(until);
  if (end <= begin) return false;
  const auto count = std::min<int64_t>(kStepsAtOnce, end - begin);
  description.mutable_steps()->Add(begin, begin + count);
  return begin + count != end;
}

bool IsAlive(const WorkerStatus& worker) {
  return worker.state() == WorkerStatus::IDLE ||
         worker.state() == WorkerStatus::BUSY;
}

}  // namespace

void ListJobs(ShowCluster show, ListJobsResponse& list) {
  JobId before(std::numeric_limits<int64_t>::max());
  bool more = true;
  while (more) {
    show([&](const Cluster& cluster) {
      const auto& jobs = cluster.jobs().all();
      int parts = 0;
      auto it = jobs.lower_bound(before);
      while (it != jobs.begin() && parts < kPartsAtOnce) {
        --it;
        *list.add_jobs() = it->second->status;
        parts += PartsOf(it->second->status);
        before = it->first;
      }
      more = it != jobs.begin();
    });
  }
}

absl::Status DescribeJob(ShowCluster show, JobId id,
                         const DescribeOptions& options,
                         JobDescription& description) {
  absl::Status found;
  std::shared_ptr<const Plan> plan;
  int64_t until = -1;
  show([&](const Cluster& cluster) {
    const absl::StatusOr<const Job*> job = cluster.FindJob(id);
    found = job.status();
    if (!found.ok()) return;
    *description.mutable_status() = (*job)->status;
    description.mutable_events()->Add((*job)->events.begin(),
                                      (*job)->events.end());
    plan = (*job)->plan;
    if (plan == nullptr)
      *description.mutable_plan()->mutable_job() = (*job)->spec;
    if (!(*job)->steps.empty()) until = (*job)->steps.back().step();
  });
  RETURN_IF_ERROR(found);
  if (plan != nullptr) *description.mutable_plan() = *plan;
  int64_t from = -1;
  for (bool more = options.steps && until >= 0; more;) {
    show([&](const Cluster& cluster) {
      more = AddSteps(cluster, id, from, until, description);
    });
    if (description.steps_size() > 0) {
      from = description.steps().rbegin()->step();
    }
  }
  return absl::OkStatus();
}

absl::Status TimelineOf(ShowCluster show, const GetTimelineRequest& request,
                        GetTimelineResponse& timelines) {
  absl::Status found;
  std::shared_ptr<const Timeline> measured;
  std::shared_ptr<const Timeline> predicted;
  std::shared_ptr<const Plan> plan;
  const auto look = [&](const Cluster& cluster) -> absl::Status {
    ASSIGN_OR_RETURN(const Job* job, cluster.FindJob(JobId(request.id())));
    if (job->measured.empty() && job->predicted == nullptr) {
      return absl::NotFoundError(absl::StrCat(
          "no step of job ", request.id(), " has been traced or predicted ",
          "since the scheduler started",
          job->ended() ? ", or newer jobs have taken the room of its timelines"
                       : ""));
    }
    ASSIGN_OR_RETURN(measured, TraceOf(job->measured, job->id, request.step()));
    predicted = job->predicted;
    plan = job->plan;
    return absl::OkStatus();
  };
  show([&](const Cluster& cluster) { found = look(cluster); });
  RETURN_IF_ERROR(found);
  if (measured != nullptr) *timelines.mutable_measured() = *measured;
  if (predicted != nullptr) *timelines.mutable_predicted() = *predicted;
  if (plan != nullptr) *timelines.mutable_stages() = plan->stages();
  return absl::OkStatus();
}

void ListWorkers(ShowCluster show, ListWorkersResponse& list) {
  WorkerId from;
  bool more = true;
  while (more) {
    show([&](const Cluster& cluster) {
      const auto& workers = cluster.workers().all();
      auto it = workers.upper_bound(from);
      for (int i = 0; it != workers.end() && i < kWorkersAtOnce; ++i, ++it) {
        *list.add_workers() = it->second.status;
        from = it->first;
      }
      more = it != workers.end();
    });
  }
  std::sort(list.mutable_workers()->pointer_begin(),
            list.mutable_workers()->pointer_end(),
            [](const WorkerStatus* a, const WorkerStatus* b) {
              if (IsAlive(*a) != IsAlive(*b)) return IsAlive(*a);
              const std::string& name = a->description().name();
              const std::string& other = b->description().name();
              if (name != other) return NaturalLess(name, other);
              return a->id() < b->id();
            });
  show([&](const Cluster& cluster) {
    *list.mutable_topology() = cluster.MeasuredPairs();
  });
}

}  // namespace troupe
