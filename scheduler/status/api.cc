#include "scheduler/status/api.h"

#include <algorithm>
#include <map>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "proto/base/status.h"
#include "scheduler/cluster/describe.h"
#include "scheduler/status/json.h"

namespace troupe {
namespace {

std::string Counts(const std::map<std::string, int>& counts) {
  std::string json;
  for (const auto& [name, count] : counts) {
    absl::StrAppend(&json, json.empty() ? "{" : ",", "\"",
                    absl::AsciiStrToLower(name), "\":", count);
  }
  return json.empty() ? "{}" : json + "}";
}

std::string ClusterJson(const ClusterHost& host, absl::Duration uptime) {
  std::map<std::string, int> workers;
  std::map<std::string, int> jobs;
  host.Read([&](const Cluster& cluster, absl::Time) {
    for (const auto& [id, worker] : cluster.workers().all()) {
      ++workers[WorkerStatus::State_Name(worker.status.state())];
    }
    for (const auto& [id, job] : cluster.jobs().all()) {
      ++jobs[JobState_Name(job->status.state())];
    }
  });
  return absl::StrCat("{\"uptime_seconds\":", absl::ToInt64Seconds(uptime),
                      ",\"workers\":", Counts(workers),
                      ",\"jobs\":", Counts(jobs), "}");
}

absl::StatusOr<std::string> JobJson(const ClusterHost& host, JobId id) {
  JobDescription job;
  RETURN_IF_ERROR(host.Read([&](const Cluster& cluster, absl::Time) {
    return DescribeJob(cluster, id, {.steps = false}, job);
  }));
  return ToJson(job);
}

absl::StatusOr<std::string> StepsJson(const ClusterHost& host, JobId id,
                                      int64_t from) {
  std::vector<StepRecord> steps;
  RETURN_IF_ERROR(
      host.Read([&](const Cluster& cluster, absl::Time) -> absl::Status {
        ASSIGN_OR_RETURN(const Job* job, cluster.FindJob(id));
        auto it = std::upper_bound(
            job->steps.begin(), job->steps.end(), from,
            [](int64_t step, const StepRecord& s) { return step < s.step(); });
        for (; it != job->steps.end() && steps.size() < kStepsMax; ++it) {
          steps.push_back(*it);
        }
        return absl::OkStatus();
      }));
  std::string json = "{\"steps\":[";
  for (const StepRecord& step : steps) {
    absl::StrAppend(&json, json.back() == '[' ? "" : ",", ToJson(step));
  }
  return json + "]}";
}

absl::StatusOr<std::string> TimelineJson(const ClusterHost& host, JobId id) {
  GetTimelineRequest request;
  request.set_id(id.value());
  GetTimelineResponse timelines;
  RETURN_IF_ERROR(host.Read([&](const Cluster& cluster, absl::Time) {
    return TimelineOf(cluster, request, timelines);
  }));
  return ToJson(timelines);
}

std::string WorkersJson(const ClusterHost& host) {
  ListWorkersResponse workers;
  host.Read([&](const Cluster& cluster, absl::Time) {
    ListWorkers(cluster, workers);
  });
  return ToJson(workers);
}

std::string JobsJson(const ClusterHost& host) {
  ListJobsResponse jobs;
  host.Read(
      [&](const Cluster& cluster, absl::Time) { ListJobs(cluster, jobs); });
  return ToJson(jobs);
}

}  // namespace

absl::StatusOr<std::string> ApiAnswer(const ClusterHost& host,
                                      absl::string_view path, int64_t from,
                                      absl::Duration uptime) {
  const std::vector<absl::string_view> parts =
      absl::StrSplit(path, '/', absl::SkipEmpty());
  if (parts.size() == 1 && parts[0] == "cluster") {
    return ClusterJson(host, uptime);
  }
  if (parts.size() == 1 && parts[0] == "workers") {
    return WorkersJson(host);
  }
  if (parts.size() == 1 && parts[0] == "jobs") {
    return JobsJson(host);
  }
  int64_t number = 0;
  if (parts.size() >= 2 && parts.size() <= 3 && parts[0] == "jobs" &&
      absl::SimpleAtoi(parts[1], &number)) {
    const JobId id(number);
    if (parts.size() == 2) return JobJson(host, id);
    if (parts[2] == "steps") return StepsJson(host, id, from);
    if (parts[2] == "timeline") return TimelineJson(host, id);
  }
  return absl::NotFoundError(absl::StrCat(
      "there is no /api/v1", path, "; there are cluster, workers, jobs, ",
      "jobs/ID, jobs/ID/steps?from=STEP, jobs/ID/timeline"));
}

}  // namespace troupe
