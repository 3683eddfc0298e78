#include "scheduler/status/api.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <iterator>
#include <map>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "proto/base/status.h"
#include "proto/plan/tier_traffic.h"
#include "scheduler/cluster/describe.h"
#include "scheduler/simulate/topology.h"
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

std::string ClusterJson(const ClusterHost& host, absl::Time started) {
  std::map<std::string, int> workers;
  std::map<std::string, int> jobs;
  int64_t newest_running = 0;
  double tokens_per_second = 0;
  host.Read([&](const Cluster& cluster, absl::Time) {
    for (const auto& [id, worker] : cluster.workers().all()) {
      ++workers[WorkerStatus::State_Name(worker.status.state())];
    }
    for (const auto& [id, job] : cluster.jobs().all()) {
      ++jobs[JobState_Name(job->status.state())];
      if (job->status.state() != RUNNING) continue;
      newest_running = id.value();
      tokens_per_second += job->status.last_step().tokens_per_second();
    }
  });
  return absl::StrCat(
      "{\"uptime_seconds\":", absl::ToInt64Seconds(absl::Now() - started),
      ",\"started_unix_ms\":", absl::ToUnixMillis(started),
      ",\"workers\":", Counts(workers), ",\"jobs\":", Counts(jobs),
      ",\"newest_running\":", newest_running,
      ",\"tokens_per_second\":", JsonNumber(tokens_per_second), "}");
}

// Without what grows with the cluster and with the job's length, which is not
// even copied: it is taken under the host's lock.
JobStatus Brief(const JobStatus& status) {
  constexpr int kWorkersShown = 8;
  JobStatus brief;
  brief.set_id(status.id());
  brief.set_name(status.name());
  brief.set_state(status.state());
  brief.set_reason(status.reason());
  brief.set_submitted_unix_ms(status.submitted_unix_ms());
  brief.set_started_unix_ms(status.started_unix_ms());
  brief.set_finished_unix_ms(status.finished_unix_ms());
  brief.set_steps_total(status.steps_total());
  brief.set_steps_done(status.steps_done());
  if (status.has_last_step()) *brief.mutable_last_step() = status.last_step();
  for (int w = 0; w < std::min(status.workers_size(), kWorkersShown); ++w) {
    brief.add_workers(status.workers(w));
  }
  if (!status.checkpoints().empty()) {
    *brief.add_checkpoints() = *status.checkpoints().rbegin();
  }
  brief.set_resumed_from(status.resumed_from());
  brief.set_made_by(status.made_by());
  brief.set_fingerprint(status.fingerprint());
  brief.set_restarts(status.restarts());
  brief.set_attempt(status.attempt());
  brief.set_stood_seconds(status.stood_seconds());
  brief.set_run_id(status.run_id());
  brief.set_unsaved(status.unsaved());
  brief.set_unsaved_step(status.unsaved_step());
  brief.set_unsaved_since_unix_ms(status.unsaved_since_unix_ms());
  brief.set_predicted_step_seconds(status.predicted_step_seconds());
  brief.set_phase(status.phase());
  brief.set_intent(status.intent());
  return brief;
}

double MedianOfLast(const std::deque<StepRecord>& steps) {
  constexpr size_t kRecent = 20;
  std::vector<double> seconds;
  for (size_t i = steps.size() - std::min(kRecent, steps.size());
       i < steps.size(); ++i) {
    seconds.push_back(steps[i].step_seconds());
  }
  if (seconds.empty()) return 0;
  std::nth_element(seconds.begin(), seconds.begin() + seconds.size() / 2,
                   seconds.end());
  return seconds[seconds.size() / 2];
}

// ,"sample_step":100,"sample":{"prompt":"Once","text":" upon"}; empty: there is
// none.
std::string LastSampleJson(const Job& job) {
  if (!job.spec.data().has_sample()) return "";
  const auto last =
      std::find_if(job.steps.rbegin(), job.steps.rend(),
                   [](const StepRecord& step) { return step.has_sample(); });
  if (last == job.steps.rend()) return "";
  return absl::StrCat(",\"sample_step\":", last->step(),
                      ",\"sample\":", ToJson(last->sample()));
}

absl::StatusOr<std::string> BriefJson(const ClusterHost& host, JobId id,
                                      int64_t from) {
  JobDescription news;
  int64_t events = 0;
  int workers = 0;
  double recent = 0;
  std::string sample;
  RETURN_IF_ERROR(host.Read([&](const Cluster& cluster,
                                absl::Time) -> absl::Status {
    ASSIGN_OR_RETURN(const Job* job, cluster.FindJob(id));
    *news.mutable_status() = Brief(job->status);
    sample = LastSampleJson(*job);
    events = static_cast<int64_t>(job->events.size());
    for (int64_t i = std::clamp<int64_t>(from, 0, events); i < events; ++i) {
      *news.add_events() = job->events[i];
    }
    workers = job->status.workers_size();
    recent = MedianOfLast(job->steps);
    return absl::OkStatus();
  }));
  std::string json = absl::StrCat(
      "{\"status\":", ToJson(news.status()), ",\"worker_count\":", workers,
      ",\"recent_step_seconds\":", JsonNumber(recent), sample,
      ",\"event_count\":", events, ",\"events\":[");
  for (const JobEvent& event : news.events()) {
    absl::StrAppend(&json, json.back() == '[' ? "" : ",", ToJson(event));
  }
  return json + "]}";
}

absl::StatusOr<std::string> PlanJson(const ClusterHost& host, JobId id) {
  Plan shown;
  google::protobuf::RepeatedPtrField<TierTraffic> predicted;
  int ranks = 0;
  RETURN_IF_ERROR(host.Read([&](const Cluster& cluster,
                                absl::Time) -> absl::Status {
    ASSIGN_OR_RETURN(const Job* job, cluster.FindJob(id));
    if (job->plan == nullptr) return absl::OkStatus();
    const Plan& plan = *job->plan;
    const Prediction& prediction = plan.prediction();
    shown.set_fingerprint(plan.fingerprint());
    *shown.mutable_mesh() = plan.mesh();
    *shown.mutable_derived() = plan.derived();
    shown.mutable_prediction()->set_step_seconds(prediction.step_seconds());
    shown.mutable_prediction()->set_limited_by(prediction.limited_by());
    shown.mutable_prediction()->set_model_flops_utilization(
        prediction.model_flops_utilization());
    shown.mutable_prediction()->set_peak_flops_per_second(
        prediction.peak_flops_per_second());
    shown.mutable_prediction()->set_datasheet_flops_per_second(
        prediction.datasheet_flops_per_second());
    shown.mutable_prediction()->set_chosen_memory(prediction.chosen_memory());
    shown.mutable_prediction()->set_keep_seconds(prediction.keep_seconds());
    shown.mutable_prediction()->set_keep_every(prediction.keep_every());
    ranks = prediction.ranks_size();
    predicted = PredictedTraffic(prediction);
    for (int r = 0; r < std::min(ranks, kRanksShown); ++r) {
      *shown.mutable_prediction()->add_ranks() = prediction.ranks(r);
    }
    return absl::OkStatus();
  }));
  std::string json = absl::StrCat("{\"plan\":", ToJson(shown),
                                  ",\"rank_count\":", ranks, ",\"tiers\":[");
  for (const TierTraffic& tier : predicted) {
    absl::StrAppend(&json, json.back() == '[' ? "" : ",", ToJson(tier));
  }
  return json + "]}";
}

std::string PointJson(const StepSeries::Point& point) {
  constexpr const char* kNames[] = {"loss", "tokens_per_second", "grad_norm",
                                    "learning_rate", "step_seconds"};
  static_assert(std::size(kNames) == StepSeries::kValueCount);
  std::string json =
      absl::StrCat("{\"first\":", point.first, ",\"last\":", point.last);
  for (int v = 0; v < StepSeries::kValueCount; ++v) {
    const StepSeries::Range& range = point.values[v];
    if (std::isnan(range.least)) continue;
    absl::StrAppend(&json, ",\"", kNames[v], "\":[", JsonNumber(range.least),
                    ",", JsonNumber(range.most), "]");
  }
  if (point.validated > 0) {
    absl::StrAppend(&json, ",\"validation\":[", point.validated, ",",
                    JsonNumber(point.validation_loss), "]");
  }
  return json + "}";
}

// "unit":3,"load":[1.02,0.98]
std::string LayerJson(const ExpertLoads::Layer& layer) {
  double all = 0;
  for (const float choices : layer.choices) all += choices;
  const double mean = all / static_cast<double>(layer.choices.size());
  std::string json = absl::StrCat("{\"unit\":", layer.unit, ",\"load\":[");
  for (const float choices : layer.choices) {
    absl::StrAppendFormat(&json, "%s%.3g", json.back() == '[' ? "" : ",",
                          mean > 0 ? choices / mean : 0);
  }
  return json + "]}";
}

std::string PointJson(const ExpertLoads::Point& point) {
  std::string json = absl::StrCat("{\"first\":", point.first, ",\"last\":",
                                  point.last, ",\"layers\":[");
  for (const ExpertLoads::Layer& layer : point.layers) {
    absl::StrAppend(&json, json.back() == '[' ? "" : ",", LayerJson(layer));
  }
  return json + "]}";
}

// Of one of a job's series.
template <class Series>
absl::StatusOr<std::string> PointsJson(const ClusterHost& host, JobId id,
                                       const ApiQuery& query,
                                       Series Job::*series) {
  std::vector<typename Series::Point> points;
  int64_t stride = 1;
  RETURN_IF_ERROR(
      host.Read([&](const Cluster& cluster, absl::Time) -> absl::Status {
        ASSIGN_OR_RETURN(const Job* job, cluster.FindJob(id));
        stride = (job->*series).stride();
        const int64_t from = query.stride == stride ? query.from : 0;
        for (const auto& point : (job->*series).points()) {
          if (point.last > from) points.push_back(point);
        }
        return absl::OkStatus();
      }));
  std::string json = absl::StrCat("{\"stride\":", stride, ",\"points\":[");
  for (const auto& point : points) {
    absl::StrAppend(&json, json.back() == '[' ? "" : ",", PointJson(point));
  }
  return json + "]}";
}

absl::StatusOr<std::string> JobJson(const ClusterHost& host, JobId id) {
  JobDescription job;
  RETURN_IF_ERROR(DescribeJob(ShownByHost(host), id, {.steps = false}, job));
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
  RETURN_IF_ERROR(TimelineOf(ShownByHost(host), request, timelines));
  return ToJson(timelines);
}

std::string WorkersJson(const ClusterHost& host) {
  ListWorkersResponse workers;
  ListWorkers(ShownByHost(host), workers);
  *workers.mutable_topology() =
      TopologyOf(workers.workers(), workers.topology());
  return ToJson(workers);
}

std::string JobsJson(const ClusterHost& host, const ApiQuery& query) {
  ListJobsResponse page;
  size_t total = 0;
  host.Read([&](const Cluster& cluster, absl::Time) {
    const auto& jobs = cluster.jobs().all();
    total = jobs.size();
    const int64_t limit = std::clamp<int64_t>(query.limit, 0, kJobsMax);
    auto it = jobs.rbegin();
    std::advance(it, std::clamp<int64_t>(query.offset, 0, total));
    for (; it != jobs.rend() && page.jobs_size() < limit; ++it) {
      *page.add_jobs() = Brief(it->second->status);
    }
  });
  std::string json = absl::StrCat("{\"total\":", total, ",\"jobs\":[");
  for (const JobStatus& job : page.jobs()) {
    absl::StrAppend(&json, json.back() == '[' ? "" : ",", ToJson(job));
  }
  return json + "]}";
}

}  // namespace

absl::StatusOr<std::string> ApiAnswer(const ClusterHost& host,
                                      absl::string_view path,
                                      const ApiQuery& query,
                                      absl::Time started) {
  const std::vector<absl::string_view> parts =
      absl::StrSplit(path, '/', absl::SkipEmpty());
  if (parts.size() == 1 && parts[0] == "cluster") {
    return ClusterJson(host, started);
  }
  if (parts.size() == 1 && parts[0] == "workers") {
    return WorkersJson(host);
  }
  if (parts.size() == 1 && parts[0] == "jobs") {
    return JobsJson(host, query);
  }
  int64_t number = 0;
  if (parts.size() >= 2 && parts.size() <= 3 && parts[0] == "jobs" &&
      absl::SimpleAtoi(parts[1], &number)) {
    const JobId id(number);
    if (parts.size() == 2) return JobJson(host, id);
    if (parts[2] == "brief") return BriefJson(host, id, query.from);
    if (parts[2] == "plan") return PlanJson(host, id);
    if (parts[2] == "curves") return PointsJson(host, id, query, &Job::series);
    if (parts[2] == "experts") return PointsJson(host, id, query, &Job::experts);
    if (parts[2] == "steps") return StepsJson(host, id, query.from);
    if (parts[2] == "timeline") return TimelineJson(host, id);
  }
  return absl::NotFoundError(absl::StrCat(
      "there is no /api/v1", path, "; there are cluster, workers, jobs, ",
      "jobs/ID, jobs/ID/brief, jobs/ID/plan, jobs/ID/curves, ",
      "jobs/ID/experts, jobs/ID/steps?from=STEP, jobs/ID/timeline"));
}

}  // namespace troupe
