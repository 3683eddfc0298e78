#include "scheduler/service/scheduler_service.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "proto/base/log.h"
#include "proto/base/one_line.h"
#include "proto/base/status.h"
#include "proto/plan/set_fields.h"
#include "scheduler/cluster/describe.h"
#include "scheduler/service/caller.h"
#include "scheduler/service/grpc_status.h"
#include "scheduler/service/message_limits.h"
#include "scheduler/simulate/topology.h"

namespace troupe {
namespace {

// A stream that ends before it has begun.
template <typename Message>
class RefusedStream final : public grpc::ServerWriteReactor<Message> {
 public:
  explicit RefusedStream(const absl::Status& why) { this->Finish(ToGrpc(why)); }
  void OnDone() override { delete this; }
};

constexpr size_t kReasonLoggedMax = 200;  // bytes of what a caller says
constexpr char kNotStored[] = "the job is not taken, for it cannot be stored";

// What is to be known of every call before its turn.
absl::Status CheckCall(const grpc::CallbackServerContext& context,
                       const google::protobuf::Message& request) {
  RETURN_IF_ERROR(CheckCallersBuild(context));
  return CheckRequestSize(request);
}

// Of a job that is submitted, or only planned.
template <typename Request>
absl::Status CheckJobKnown(const Request& request) {
  return CheckFieldsKnown(request.job(),
                          {request.fields().begin(), request.fields().end()});
}

// Until the call is answered.
Asker AskerOf(grpc::CallbackServerContext* context, bool submits) {
  return {.patience = absl::FromChrono(context->deadline()) - absl::Now(),
          .has_given_up = [context] { return context->IsCancelled(); },
          .submits = submits,
          .client = NameOfCaller(*context)};
}

}  // namespace

SchedulerService::SchedulerService(ClusterHost& host, const Parts& parts,
                                   FlushFunction flush, RpcFunction told)
    : host_(host),
      planning_(parts.planning),
      watchers_(parts.watchers),
      texts_(parts.texts),
      file_checks_(parts.file_checks),
      flush_(std::move(flush)),
      told_(std::move(told)) {
  SetMessageAllocatorFor_ListJobs(&list_jobs_);
  SetMessageAllocatorFor_DescribeJob(&describe_job_);
  SetMessageAllocatorFor_GetTimeline(&get_timeline_);
  SetMessageAllocatorFor_ListWorkers(&list_workers_);
  SetMessageAllocatorFor_PlanJob(&plan_job_);
}

SchedulerService::Reactor* SchedulerService::Answer(
    Reactor* reactor, absl::string_view rpc, const absl::Status& status) const {
  told_(rpc, status);
  reactor->Finish(ToGrpc(status));
  return reactor;
}

SchedulerService::Reactor* SchedulerService::InTurn(
    Context* context, absl::string_view rpc,
    const google::protobuf::Message& request,
    std::function<void(Reactor*)> serve) {
  Reactor* const reactor = context->DefaultReactor();
  const absl::Status checked = CheckCall(*context, request);
  if (!checked.ok()) return Answer(reactor, rpc, checked);
  turnstile_.Enter(NameOfCaller(*context), [=, this, serve = std::move(serve)](
                                               const absl::Status& turn) {
    if (turn.ok()) {
      serve(reactor);
    } else {
      Answer(reactor, rpc, turn);
    }
  });
  return reactor;
}

SchedulerService::Reactor* SchedulerService::InTurnOfLarge(
    Context* context, absl::string_view rpc,
    const google::protobuf::Message& request,
    std::function<void(Reactor*)> serve) {
  return InTurn(context, rpc, request,
                [=, this, serve = std::move(serve)](Reactor* reactor) {
                  const absl::Status may =
                      unread_.MayAnswer(NameOfCaller(*context));
                  if (may.ok()) {
                    serve(reactor);
                  } else {
                    Answer(reactor, rpc, may);
                  }
                });
}

template <typename Request, typename Response>
void SchedulerService::AnswerLarge(
    const ArenaMessages<Request, Response>& messages, Context* context,
    Reactor* reactor, absl::string_view rpc, const Response& response,
    const absl::Status& status) {
  const std::string client = NameOfCaller(*context);
  const auto bytes = static_cast<int64_t>(response.ByteSizeLong());
  unread_.Add(client, bytes);
  messages.OnRelease(context,
                     [this, client, bytes] { unread_.Remove(client, bytes); });
  Answer(reactor, rpc, status);
}

absl::Status SchedulerService::MayStream(
    Context* context, absl::string_view rpc,
    const google::protobuf::Message& request) {
  absl::Status status = CheckCall(*context, request);
  if (status.ok()) status = turnstile_.EnterNow(NameOfCaller(*context));
  told_(rpc, status);
  return status;
}

SchedulerService::Reactor* SchedulerService::SubmitJob(
    Context* context, const SubmitJobRequest* request,
    SubmitJobResponse* response) {
  return InTurn(context, "SubmitJob", *request, [=, this](Reactor* reactor) {
    Consider(context, reactor, request, response);
  });
}

void SchedulerService::Consider(Context* context, Reactor* reactor,
                                const SubmitJobRequest* request,
                                SubmitJobResponse* response) {
  const absl::Status known = CheckJobKnown(*request);
  if (!known.ok()) {
    Answer(reactor, "SubmitJob", known);
    return;
  }
  // One job tells that the disk is full; more of them would only take the place
  // of others that have ended.
  const absl::Status writable = host_.Read(
      [](const Cluster& cluster, absl::Time) { return cluster.CheckStore(); });
  if (!writable.ok()) {
    Answer(reactor, "SubmitJob", Annotate(writable, kNotStored));
    return;
  }
  absl::StatusOr<Compilation> compilation =
      host_.Read([&](const Cluster& cluster, absl::Time) {
        return cluster.Consider(request->job(), NameOfCaller(*context));
      });
  if (!compilation.ok()) {
    Answer(reactor, "SubmitJob", compilation.status());
  } else if (compilation->choices.empty()) {
    CheckFiles(context, reactor, request, CompileOutcome(), response);
  } else {
    planning_.Compile(*std::move(compilation), AskerOf(context, true),
                      [=, this](const auto& considered) {
                        CheckFiles(context, reactor, request, considered,
                                   response);
                      });
  }
}

void SchedulerService::CheckFiles(
    Context* context, Reactor* reactor, const SubmitJobRequest* request,
    const absl::StatusOr<CompileOutcome>& considered,
    SubmitJobResponse* response) {
  absl::Status refusal = considered.status();
  if (considered.ok() && !considered->fits()) refusal = considered->refusal;
  if (!refusal.ok()) {
    Answer(reactor, "SubmitJob", refusal);
    return;
  }
  // Resolved, where it was planned.
  const auto& outline = considered->compiled.outline;
  file_checks_.Check(
      outline == nullptr ? request->job() : outline->job(),
      [=, this, considered = *considered](const absl::Status& files) {
        if (context->IsCancelled()) {
          Answer(reactor, "SubmitJob",
                 absl::CancelledError("the client has gone"));
        } else if (files.ok()) {
          Submit(context, reactor, request, considered, response);
        } else {
          Answer(reactor, "SubmitJob", files);
        }
      });
}

void SchedulerService::Submit(Context* context, Reactor* reactor,
                              const SubmitJobRequest* request,
                              const CompileOutcome& considered,
                              SubmitJobResponse* response) {
  const std::string client = NameOfCaller(*context);
  const absl::StatusOr<JobId> id =
      host_.Apply([&](Cluster& cluster, absl::Time now, Actions& out) {
        auto submitted =
            cluster.Submit(request->job(), considered, now, out,
                           {.client = client, .made_by = request->made_by()});
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
  LogInfo(absl::StrCat("job ", id->value(), " (", request->job().name(),
                       ") submitted by ", client));
  flush_([this, reactor, id = *id](const absl::Status& durable) {
    if (!durable.ok()) {
      host_.Apply([&](Cluster& cluster, absl::Time now, Actions& out) {
        cluster.Cancel(id, now, out).IgnoreError();
        cluster.Stored(AwaitStored{}, durable, now, out);
      });
    }
    Answer(reactor, "SubmitJob", Annotate(durable, kNotStored));
  });
}

SchedulerService::Reactor* SchedulerService::PlanJob(
    Context* context, const PlanJobRequest* request,
    PlanJobResponse* response) {
  return InTurnOfLarge(context, "PlanJob", *request,
                       [=, this](Reactor* reactor) {
                         Consider(context, reactor, request, response);
                       });
}

void SchedulerService::Consider(Context* context, Reactor* reactor,
                                const PlanJobRequest* request,
                                PlanJobResponse* response) {
  const absl::Status known = CheckJobKnown(*request);
  if (!known.ok()) {
    Answer(reactor, "PlanJob", known);
    return;
  }
  absl::StatusOr<Compilation> compilation =
      host_.Read([&](const Cluster& cluster, absl::Time) {
        return cluster.PlanJob(request->job());
      });
  if (!compilation.ok()) {
    Answer(reactor, "PlanJob", compilation.status());
    return;
  }
  compilation->explain = request->explain();
  planning_.Compile(
      *std::move(compilation), AskerOf(context, false),
      [=, this](const absl::StatusOr<CompileOutcome>& outcome) {
        if (outcome.ok() && outcome->refusal.ok() && request->explain()) {
          *response->mutable_explanation() = outcome->explanation;
          AnswerLarge(plan_job_, context, reactor, "PlanJob", *response,
                      absl::OkStatus());
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
        if (compiled.explanation.has_search()) {
          *response->mutable_explanation() = compiled.explanation;
        }
        AnswerLarge(plan_job_, context, reactor, "PlanJob", *response,
                    absl::OkStatus());
      });
}

SchedulerService::Reactor* SchedulerService::ListJobs(
    Context* context, const ListJobsRequest* request,
    ListJobsResponse* response) {
  return InTurnOfLarge(context, "ListJobs", *request,
                       [=, this](Reactor* reactor) {
                         troupe::ListJobs(ShownByHost(host_), *response);
                         AnswerLarge(list_jobs_, context, reactor, "ListJobs",
                                     *response, absl::OkStatus());
                       });
}

SchedulerService::Reactor* SchedulerService::DescribeJob(
    Context* context, const DescribeJobRequest* request,
    JobDescription* response) {
  return InTurnOfLarge(
      context, "DescribeJob", *request, [=, this](Reactor* reactor) {
        const absl::Status described = troupe::DescribeJob(
            ShownByHost(host_), JobId(request->id()), {}, *response);
        AnswerLarge(describe_job_, context, reactor, "DescribeJob", *response,
                    described);
      });
}

grpc::ServerWriteReactor<WatchJobResponse>* SchedulerService::WatchJob(
    Context* context, const WatchJobRequest* request) {
  const absl::Status status = MayStream(context, "WatchJob", *request);
  if (!status.ok()) return new RefusedStream<WatchJobResponse>(status);
  return watchers_.Watch(NameOfCaller(*context), *request);
}

SchedulerService::Reactor* SchedulerService::CancelJob(
    Context* context, const CancelJobRequest* request,
    CancelJobResponse* response) {
  return InTurn(context, "CancelJob", *request, [=, this](Reactor* reactor) {
    const std::string client = NameOfCaller(*context);
    const absl::Status cancelled =
        host_.Apply([&](Cluster& cluster, absl::Time now, Actions& out) {
          const JobId id(request->id());
          absl::Status status =
              request->checkpoint()
                  ? cluster.SaveAndCancel(id, now, out, client)
                  : cluster.Cancel(id, now, out, client);
          if (status.ok()) {
            *response->mutable_status() = (*cluster.FindJob(id))->status;
          }
          return status;
        });
    if (!cancelled.ok()) {
      Answer(reactor, "CancelJob", cancelled);
      return;
    }
    LogInfo(absl::StrCat("job ", request->id(), " cancelled by ", client));
    flush_([this, reactor](const absl::Status& durable) {
      Answer(reactor, "CancelJob",
             Annotate(durable, "cancelled, but that cannot be stored"));
    });
  });
}

SchedulerService::Reactor* SchedulerService::GetTimeline(
    Context* context, const GetTimelineRequest* request,
    GetTimelineResponse* response) {
  return InTurnOfLarge(
      context, "GetTimeline", *request, [=, this](Reactor* reactor) {
        const absl::Status found =
            troupe::TimelineOf(ShownByHost(host_), *request, *response);
        AnswerLarge(get_timeline_, context, reactor, "GetTimeline", *response,
                    found);
      });
}

SchedulerService::Reactor* SchedulerService::ListWorkers(
    Context* context, const ListWorkersRequest* request,
    ListWorkersResponse* response) {
  return InTurnOfLarge(
      context, "ListWorkers", *request, [=, this](Reactor* reactor) {
        troupe::ListWorkers(ShownByHost(host_), *response);
        *response->mutable_topology() =
            TopologyOf(response->workers(), response->topology());
        AnswerLarge(list_workers_, context, reactor, "ListWorkers", *response,
                    absl::OkStatus());
      });
}

SchedulerService::Reactor* SchedulerService::CordonWorker(
    Context* context, const CordonWorkerRequest* request,
    CordonWorkerResponse* response) {
  return InTurn(context, "CordonWorker", *request, [=, this](Reactor* reactor) {
    absl::StatusOr<WorkerStatus> worker =
        host_.Apply([&](Cluster& cluster, absl::Time now, Actions& out) {
          return cluster.CordonWorker(*request, now, out);
        });
    if (!worker.ok()) {
      Answer(reactor, "CordonWorker", worker.status());
      return;
    }
    LogInfo(absl::StrCat("worker ", request->name(),
                         request->cordon() ? " cordoned by " : " put back by ",
                         NameOfCaller(*context),
                         request->why().empty() ? "" : ": ",
                         OneLine(request->why(), kReasonLoggedMax)));
    *response->mutable_worker() = *std::move(worker);
    flush_([this, reactor](const absl::Status& durable) {
      Answer(reactor, "CordonWorker",
             Annotate(durable, "done, but that cannot be stored"));
    });
  });
}

grpc::ServerWriteReactor<GenerateResponse>* SchedulerService::Generate(
    Context* context, const GenerateRequest* request) {
  const absl::Status status = MayStream(context, "Generate", *request);
  if (!status.ok()) return new RefusedStream<GenerateResponse>(status);
  return texts_.Generate(context, *request);
}

SchedulerService::Reactor* SchedulerService::CancelText(
    Context* context, const CancelTextRequest* request,
    CancelTextResponse* response) {
  return InTurn(context, "CancelText", *request, [=, this](Reactor* reactor) {
    const absl::StatusOr<std::string> worker =
        host_.Apply([&](Cluster& cluster, absl::Time now, Actions& out) {
          return cluster.CancelText(request->text(), now, out);
        });
    if (worker.ok()) {
      response->set_worker(*worker);
      LogInfo(absl::StrCat("text ", request->text(), ", which ", *worker,
                           " wrote, cancelled by ", NameOfCaller(*context)));
    }
    Answer(reactor, "CancelText", worker.status());
  });
}

}  // namespace troupe
