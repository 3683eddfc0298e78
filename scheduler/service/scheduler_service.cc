#include "scheduler/service/scheduler_service.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/log.h"
#include "proto/base/status.h"
#include "scheduler/cluster/describe.h"
#include "scheduler/service/grpc_status.h"

namespace troupe {
namespace {

// Until the call is answered.
Asker AskerOf(grpc::CallbackServerContext* context, bool submits) {
  return {.deadline = absl::FromChrono(context->deadline()),
          .has_given_up = [context] { return context->IsCancelled(); },
          .submits = submits};
}

}  // namespace

SchedulerService::SchedulerService(ClusterHost& host, Planning& planning,
                                   JobWatchers& watchers, TextStreams& texts,
                                   FlushFunction flush, RpcFunction told)
    : host_(host),
      planning_(planning),
      watchers_(watchers),
      texts_(texts),
      flush_(std::move(flush)),
      told_(std::move(told)) {
  SetMessageAllocatorFor_ListJobs(&list_jobs_);
  SetMessageAllocatorFor_DescribeJob(&describe_job_);
  SetMessageAllocatorFor_GetTimeline(&get_timeline_);
  SetMessageAllocatorFor_ListWorkers(&list_workers_);
}

SchedulerService::Reactor* SchedulerService::Answer(
    Reactor* reactor, absl::string_view rpc, const absl::Status& status) const {
  told_(rpc, status);
  reactor->Finish(ToGrpc(status));
  return reactor;
}

SchedulerService::Reactor* SchedulerService::SubmitJob(
    Context* context, const SubmitJobRequest* request,
    SubmitJobResponse* response) {
  absl::StatusOr<Compilation> compilation =
      host_.Read([&](const Cluster& cluster, absl::Time) {
        return cluster.Consider(request->job());
      });
  if (!compilation.ok()) {
    return Answer(context, "SubmitJob", compilation.status());
  }
  Reactor* reactor = context->DefaultReactor();
  if (compilation->choices.empty()) {
    Submit(reactor, request->job(), CompileOutcome(), response);
  } else {
    planning_.Compile(*std::move(compilation), AskerOf(context, true),
                      [=, this](const auto& considered) {
                        Submit(reactor, request->job(), considered, response);
                      });
  }
  return reactor;
}

void SchedulerService::Submit(Reactor* reactor, const JobSpec& job,
                              const absl::StatusOr<CompileOutcome>& considered,
                              SubmitJobResponse* response) {
  absl::Status refusal = considered.status();
  if (considered.ok() && !considered->fits()) refusal = considered->refusal;
  if (!refusal.ok()) {
    Answer(reactor, "SubmitJob", refusal);
    return;
  }
  const absl::StatusOr<JobId> id =
      host_.Apply([&](Cluster& cluster, absl::Time now, Actions& out) {
        auto submitted = cluster.Submit(job, *considered, now, out);
        if (submitted.ok()) {
          response->set_id(submitted->value());
          *response->mutable_status() = (*cluster.FindJob(*submitted))->status;
        }
        return submitted;
      });
  if (!id.ok()) {
    Answer(reactor, "SubmitJob", id.status());
    return;
  }
  LogInfo(absl::StrCat("job ", id->value(), " (", job.name(), ") submitted"));
  flush_([this, reactor, id = *id](const absl::Status& durable) {
    if (!durable.ok()) {
      host_.Apply([&](Cluster& cluster, absl::Time now, Actions& out) {
        cluster.Cancel(id, now, out).IgnoreError();
      });
    }
    Answer(reactor, "SubmitJob",
           Annotate(durable, "the job is not taken, for it cannot be stored"));
  });
}

SchedulerService::Reactor* SchedulerService::PlanJob(
    Context* context, const PlanJobRequest* request,
    PlanJobResponse* response) {
  absl::StatusOr<Compilation> compilation =
      host_.Read([&](const Cluster& cluster, absl::Time) {
        return cluster.PlanJob(request->job());
      });
  if (!compilation.ok()) {
    return Answer(context, "PlanJob", compilation.status());
  }
  compilation->explain = request->explain();
  Reactor* reactor = context->DefaultReactor();
  planning_.Compile(
      *std::move(compilation), AskerOf(context, false),
      [=, this](const absl::StatusOr<CompileOutcome>& outcome) {
        if (outcome.ok() && outcome->refusal.ok() && request->explain()) {
          *response->mutable_explanation() = outcome->explanation;
          Answer(reactor, "PlanJob", absl::OkStatus());
          return;
        }
        if (!outcome.ok() || !outcome->fits()) {
          Answer(reactor, "PlanJob",
                 outcome.ok() ? outcome->refusal : outcome.status());
          return;
        }
        const CompiledJob& compiled = outcome->compiled;
        *response->mutable_plan() =
            request->programs() ? *compiled.plan : *compiled.outline;
        Answer(reactor, "PlanJob", absl::OkStatus());
      });
  return reactor;
}

SchedulerService::Reactor* SchedulerService::ListJobs(
    Context* context, const ListJobsRequest*, ListJobsResponse* response) {
  host_.Read([&](const Cluster& cluster, absl::Time) {
    troupe::ListJobs(cluster, *response);
  });
  return Answer(context, "ListJobs", absl::OkStatus());
}

SchedulerService::Reactor* SchedulerService::DescribeJob(
    Context* context, const DescribeJobRequest* request,
    JobDescription* response) {
  const absl::Status status = host_.Read([&](const Cluster& cluster,
                                             absl::Time) {
    return troupe::DescribeJob(cluster, JobId(request->id()), {}, *response);
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
        absl::Status status = request->checkpoint()
                                  ? cluster.SaveAndCancel(id, now, out)
                                  : cluster.Cancel(id, now, out);
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
      host_.Read([&](const Cluster& cluster, absl::Time) {
        return troupe::TimelineOf(cluster, *request, *response);
      });
  return Answer(context, "GetTimeline", status);
}

SchedulerService::Reactor* SchedulerService::ListWorkers(
    Context* context, const ListWorkersRequest*,
    ListWorkersResponse* response) {
  host_.Read([&](const Cluster& cluster, absl::Time) {
    troupe::ListWorkers(cluster, *response);
  });
  return Answer(context, "ListWorkers", absl::OkStatus());
}

grpc::ServerWriteReactor<GenerateResponse>* SchedulerService::Generate(
    Context* context, const GenerateRequest* request) {
  told_("Generate", absl::OkStatus());
  return texts_.Generate(context, *request);
}

SchedulerService::Reactor* SchedulerService::CancelText(
    Context* context, const CancelTextRequest* request,
    CancelTextResponse* response) {
  const absl::StatusOr<std::string> worker =
      host_.Apply([&](Cluster& cluster, absl::Time now, Actions& out) {
        return cluster.CancelText(request->text(), now, out);
      });
  if (worker.ok()) response->set_worker(*worker);
  return Answer(context, "CancelText", worker.status());
}

}  // namespace troupe
