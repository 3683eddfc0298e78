#include "tests/clients/cpp/fake_scheduler.h"

#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "grpcpp/grpcpp.h"
#include "proto/base/check.h"
#include "proto/build_version.h"
#include "proto/scheduler.grpc.pb.h"

namespace troupe {

class FakeJobScheduler::Service final : public Scheduler::Service {
 public:
  explicit Service(const FakeJobScheduler& script) : script_(script) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                             &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
    CHECK(server_ != nullptr && port_ != 0);
  }
  ~Service() override { server_->Shutdown(absl::ToChronoTime(absl::Now())); }

  int port() const { return port_; }
  Asked asked() const {
    absl::MutexLock lock(&mutex_);
    return asked_;
  }
  void WaitForGoneWatcher() { watcher_gone_.WaitForNotification(); }
  void WaitForGoneSubmitter() { submitter_gone_.WaitForNotification(); }

 private:
  using Context = grpc::ServerContext;

  static grpc::Status NoJob(int64_t id) {
    return {grpc::StatusCode::NOT_FOUND, absl::StrCat("no job ", id)};
  }

  grpc::Status Refusal() const {
    return {static_cast<grpc::StatusCode>(script_.refusal.code()),
            std::string(script_.refusal.message())};
  }

  const JobDescription* Find(int64_t id) const {
    for (const JobDescription& job : script_.jobs) {
      if (job.status().id() == id) return &job;
    }
    return nullptr;
  }

  // gRPC's blocking server has no other way to notice.
  static void AwaitGone(const Context& context, absl::Notification& gone) {
    while (!context.IsCancelled()) absl::SleepFor(absl::Milliseconds(2));
    gone.Notify();
  }

  grpc::Status SubmitJob(Context* context, const SubmitJobRequest* request,
                         SubmitJobResponse* response) override {
    if (!script_.refusal.ok()) return Refusal();
    {
      absl::MutexLock lock(&mutex_);
      asked_.submitted.push_back(request->job());
      asked_.fields = {request->fields().begin(), request->fields().end()};
      for (const auto& [key, value] : context->client_metadata()) {
        if (key != kBuildVersionKey) continue;
        asked_.version.assign(value.data(), value.size());
      }
      response->set_id(asked_.submitted.size());
    }
    if (script_.submit_hangs) {
      AwaitGone(*context, submitter_gone_);
      return grpc::Status::CANCELLED;
    }
    response->mutable_status()->set_id(response->id());
    response->mutable_status()->set_name(request->job().name());
    response->mutable_status()->set_state(QUEUED);
    return grpc::Status::OK;
  }

  grpc::Status PlanJob(Context*, const PlanJobRequest* request,
                       PlanJobResponse* response) override {
    if (!script_.refusal.ok()) return Refusal();
    if (request->explain()) {
      response->mutable_explanation()->add_ways()->set_advice("as it is");
      return grpc::Status::OK;
    }
    *response->mutable_plan()->mutable_job() = request->job();
    return grpc::Status::OK;
  }

  grpc::Status ListJobs(Context*, const ListJobsRequest*,
                        ListJobsResponse* response) override {
    for (const JobDescription& job : script_.jobs) {
      *response->add_jobs() = job.status();
    }
    return grpc::Status::OK;
  }

  grpc::Status DescribeJob(Context*, const DescribeJobRequest* request,
                           JobDescription* response) override {
    const JobDescription* job = Find(request->id());
    if (job == nullptr) return NoJob(request->id());
    *response = *job;
    return grpc::Status::OK;
  }

  grpc::Status WatchJob(Context* context, const WatchJobRequest* request,
                        grpc::ServerWriter<WatchJobResponse>* writer) override {
    {
      absl::MutexLock lock(&mutex_);
      asked_.watched.push_back(*request);
    }
    for (const WatchJobResponse& update : script_.watch) writer->Write(update);
    if (script_.watch_hangs) AwaitGone(*context, watcher_gone_);
    if (script_.watch_breaks) {
      return grpc::Status(grpc::StatusCode::UNAVAILABLE, "it breaks");
    }
    return grpc::Status::OK;
  }

  grpc::Status CancelJob(Context*, const CancelJobRequest* request,
                         CancelJobResponse* response) override {
    const JobDescription* job = Find(request->id());
    if (job == nullptr) return NoJob(request->id());
    absl::MutexLock lock(&mutex_);
    asked_.cancelled.push_back(request->id());
    *response->mutable_status() = job->status();
    response->mutable_status()->set_state(CANCELLED);
    return grpc::Status::OK;
  }

  grpc::Status GetTimeline(Context*, const GetTimelineRequest* request,
                           GetTimelineResponse* response) override {
    if (Find(request->id()) == nullptr) return NoJob(request->id());
    absl::MutexLock lock(&mutex_);
    asked_.traced.push_back(request->step());
    *response = script_.timeline;
    return grpc::Status::OK;
  }

  grpc::Status ListWorkers(Context*, const ListWorkersRequest*,
                           ListWorkersResponse* response) override {
    *response->mutable_topology() = script_.topology;
    if (script_.workers == nullptr) return grpc::Status::OK;
    for (const WorkerStatus& worker : script_.workers()) {
      *response->add_workers() = worker;
    }
    return grpc::Status::OK;
  }

  grpc::Status Generate(Context*, const GenerateRequest* request,
                        grpc::ServerWriter<GenerateResponse>* writer) override {
    {
      absl::MutexLock lock(&mutex_);
      asked_.generated.push_back(*request);
    }
    int32_t id = 0;
    for (const std::string& piece : script_.text) {
      GenerateResponse response;
      response.set_text(piece);
      response.add_ids(id++);
      response.set_tokens(piece.size());
      writer->Write(response);
    }
    return grpc::Status::OK;
  }

  grpc::Status CordonWorker(Context*, const CordonWorkerRequest* request,
                            CordonWorkerResponse* response) override {
    absl::MutexLock lock(&mutex_);
    asked_.cordons.push_back(*request);
    WorkerStatus& worker = *response->mutable_worker();
    worker.mutable_description()->set_name(request->name());
    worker.set_cordoned(request->cordon());
    if (request->cordon()) worker.set_set_aside("cordoned: " + request->why());
    return grpc::Status::OK;
  }

  grpc::Status CancelText(Context*, const CancelTextRequest* request,
                          CancelTextResponse* response) override {
    absl::MutexLock lock(&mutex_);
    asked_.cancelled_texts.push_back(request->text());
    response->set_worker("worker-0");
    return grpc::Status::OK;
  }

  const FakeJobScheduler& script_;
  mutable absl::Mutex mutex_;
  Asked asked_ ABSL_GUARDED_BY(mutex_);
  absl::Notification watcher_gone_;
  absl::Notification submitter_gone_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

FakeJobScheduler::FakeJobScheduler()
    : service_(std::make_unique<Service>(*this)) {}
FakeJobScheduler::~FakeJobScheduler() = default;

std::string FakeJobScheduler::address() const {
  return absl::StrCat("127.0.0.1:", service_->port());
}

FakeJobScheduler::Asked FakeJobScheduler::asked() const {
  return service_->asked();
}

void FakeJobScheduler::WaitForGoneWatcher() { service_->WaitForGoneWatcher(); }

void FakeJobScheduler::WaitForGoneSubmitter() {
  service_->WaitForGoneSubmitter();
}

}  // namespace troupe
