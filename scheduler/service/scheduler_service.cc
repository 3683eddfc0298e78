#include "scheduler/service/scheduler_service.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "proto/base/log.h"
#include "proto/base/status.h"
#include "scheduler/cluster/describe.h"
#include "scheduler/service/grpc_status.h"

namespace troupe {

SchedulerService::Reactor* SchedulerService::Answer(
    Reactor* reactor, absl::string_view rpc, const absl::Status& status) const {
  told_(rpc, status);
  reactor->Finish(ToGrpc(status));
  return reactor;
}

SchedulerService::Reactor* SchedulerService::SubmitJob(
    Context* context, const SubmitJobRequest* request,
    SubmitJobResponse* response) {
  const absl::StatusOr<JobId> id =
      host_.Apply([&](Cluster& cluster, absl::Time now, Actions& out) {
        auto submitted = cluster.Submit(request->job(), now, out);
        if (submitted.ok()) {
          response->set_id(submitted->value());
          *response->mutable_status() = (*cluster.FindJob(*submitted))->status;
        }
        return submitted;
      });
  if (!id.ok()) return Answer(context, "SubmitJob", id.status());
  LogInfo(absl::StrCat("job ", id->value(), " (", request->job().name(),
                       ") submitted"));
  Reactor* reactor = context->DefaultReactor();
  flush_([this, reactor, job = *id](const absl::Status& durable) {
    if (!durable.ok()) {
      host_.Apply([&](Cluster& cluster, absl::Time now, Actions& out) {
        cluster.Cancel(job, now, out).IgnoreError();
      });
    }
    Answer(reactor, "SubmitJob",
           Annotate(durable, "the job is not taken, for it cannot be stored"));
  });
  return reactor;
}

SchedulerService::Reactor* SchedulerService::PlanJob(
    Context* context, const PlanJobRequest* request,
    PlanJobResponse* response) {
  const absl::StatusOr<CompiledJob> compiled =
      host_.Read([&](const Cluster& cluster, absl::Time) {
        return cluster.PlanJob(request->job());
      });
  if (compiled.ok()) {
    *response->mutable_plan() = *compiled->plan;
    if (!request->programs()) response->mutable_plan()->clear_ranks();
  }
  return Answer(context, "PlanJob", compiled.status());
}

SchedulerService::Reactor* SchedulerService::ListJobs(
    Context* context, const ListJobsRequest*, ListJobsResponse* response) {
  host_.Read([&](const Cluster& cluster, absl::Time) {
    *response = troupe::ListJobs(cluster);
  });
  return Answer(context, "ListJobs", absl::OkStatus());
}

SchedulerService::Reactor* SchedulerService::DescribeJob(
    Context* context, const DescribeJobRequest* request,
    JobDescription* response) {
  const absl::Status status =
      host_.Read([&](const Cluster& cluster, absl::Time) -> absl::Status {
        ASSIGN_OR_RETURN(*response,
                         troupe::DescribeJob(cluster, JobId(request->id())));
        return absl::OkStatus();
      });
  return Answer(context, "DescribeJob", status);
}

grpc::ServerWriteReactor<WatchJobResponse>* SchedulerService::WatchJob(
    Context* context, const WatchJobRequest* request) {
  told_("WatchJob", absl::OkStatus());
  return watchers_.Watch(context, *request);
}

SchedulerService::Reactor* SchedulerService::CancelJob(
    Context* context, const CancelJobRequest* request,
    CancelJobResponse* response) {
  const absl::Status cancelled =
      host_.Apply([&](Cluster& cluster, absl::Time now, Actions& out) {
        const JobId id(request->id());
        absl::Status status = cluster.Cancel(id, now, out);
        if (status.ok()) {
          *response->mutable_status() = (*cluster.FindJob(id))->status;
        }
        return status;
      });
  if (!cancelled.ok()) return Answer(context, "CancelJob", cancelled);
  Reactor* reactor = context->DefaultReactor();
  flush_([this, reactor](const absl::Status& durable) {
    Answer(reactor, "CancelJob",
           Annotate(durable, "cancelled, but that cannot be stored"));
  });
  return reactor;
}

SchedulerService::Reactor* SchedulerService::GetTimeline(
    Context* context, const GetTimelineRequest* request,
    GetTimelineResponse* response) {
  const absl::Status status =
      host_.Read([&](const Cluster& cluster, absl::Time) -> absl::Status {
        ASSIGN_OR_RETURN(*response,
                         troupe::TimelineOf(cluster, JobId(request->id())));
        return absl::OkStatus();
      });
  return Answer(context, "GetTimeline", status);
}

SchedulerService::Reactor* SchedulerService::ListWorkers(
    Context* context, const ListWorkersRequest*,
    ListWorkersResponse* response) {
  host_.Read([&](const Cluster& cluster, absl::Time) {
    *response = troupe::ListWorkers(cluster);
  });
  return Answer(context, "ListWorkers", absl::OkStatus());
}

grpc::ServerWriteReactor<GenerateResponse>* SchedulerService::Generate(
    Context* context, const GenerateRequest* request) {
  told_("Generate", absl::OkStatus());
  return texts_.Generate(context, *request);
}

}  // namespace troupe
