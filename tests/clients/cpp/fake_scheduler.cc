#include "tests/clients/cpp/fake_scheduler.h"

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "proto/base/check.h"

namespace troupe {
namespace {

grpc::Status NoJob(int64_t id) {
  return {grpc::StatusCode::NOT_FOUND, absl::StrCat("no job ", id)};
}

}  // namespace

FakeScheduler::FakeScheduler() {
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                           &port_);
  builder.RegisterService(this);
  server_ = builder.BuildAndStart();
  CHECK(server_ != nullptr && port_ != 0);
}

FakeScheduler::~FakeScheduler() {
  server_->Shutdown(absl::ToChronoTime(absl::Now()));
}

std::string FakeScheduler::address() const {
  return absl::StrCat("127.0.0.1:", port_);
}

std::vector<JobSpec> FakeScheduler::submitted() const {
  absl::MutexLock lock(&mutex_);
  return submitted_;
}
std::vector<WatchJobRequest> FakeScheduler::watched() const {
  absl::MutexLock lock(&mutex_);
  return watched_;
}
std::vector<GenerateRequest> FakeScheduler::generated() const {
  absl::MutexLock lock(&mutex_);
  return generated_;
}
std::vector<int64_t> FakeScheduler::cancelled() const {
  absl::MutexLock lock(&mutex_);
  return cancelled_;
}

const JobDescription* FakeScheduler::Find(int64_t id) const {
  for (const JobDescription& job : jobs) {
    if (job.status().id() == id) return &job;
  }
  return nullptr;
}

grpc::Status FakeScheduler::SubmitJob(Context*, const SubmitJobRequest* request,
                                      SubmitJobResponse* response) {
  if (!refusal.ok()) return refusal;
  absl::MutexLock lock(&mutex_);
  submitted_.push_back(request->job());
  response->set_id(submitted_.size());
  response->mutable_status()->set_id(submitted_.size());
  response->mutable_status()->set_name(request->job().name());
  response->mutable_status()->set_state(QUEUED);
  return grpc::Status::OK;
}

grpc::Status FakeScheduler::PlanJob(Context*, const PlanJobRequest* request,
                                    PlanJobResponse* response) {
  if (!refusal.ok()) return refusal;
  *response->mutable_plan()->mutable_job() = request->job();
  return grpc::Status::OK;
}

grpc::Status FakeScheduler::ListJobs(Context*, const ListJobsRequest*,
                                     ListJobsResponse* response) {
  for (const JobDescription& job : jobs) *response->add_jobs() = job.status();
  return grpc::Status::OK;
}

grpc::Status FakeScheduler::DescribeJob(Context*,
                                        const DescribeJobRequest* request,
                                        JobDescription* response) {
  const JobDescription* job = Find(request->id());
  if (job == nullptr) return NoJob(request->id());
  *response = *job;
  return grpc::Status::OK;
}

grpc::Status FakeScheduler::WatchJob(
    Context* context, const WatchJobRequest* request,
    grpc::ServerWriter<WatchJobResponse>* writer) {
  {
    absl::MutexLock lock(&mutex_);
    watched_.push_back(*request);
  }
  for (const WatchJobResponse& update : watch) writer->Write(update);
  if (watch_hangs) {
    while (!context->IsCancelled()) absl::SleepFor(absl::Milliseconds(2));
    watcher_gone_.Notify();
  }
  return grpc::Status::OK;
}

grpc::Status FakeScheduler::CancelJob(Context*, const CancelJobRequest* request,
                                      CancelJobResponse* response) {
  const JobDescription* job = Find(request->id());
  if (job == nullptr) return NoJob(request->id());
  absl::MutexLock lock(&mutex_);
  cancelled_.push_back(request->id());
  *response->mutable_status() = job->status();
  response->mutable_status()->set_state(CANCELLED);
  return grpc::Status::OK;
}

grpc::Status FakeScheduler::GetTimeline(Context*,
                                        const GetTimelineRequest* request,
                                        GetTimelineResponse* response) {
  if (Find(request->id()) == nullptr) return NoJob(request->id());
  *response = timeline;
  return grpc::Status::OK;
}

grpc::Status FakeScheduler::ListWorkers(Context*, const ListWorkersRequest*,
                                        ListWorkersResponse* response) {
  for (const WorkerStatus& worker : workers) *response->add_workers() = worker;
  return grpc::Status::OK;
}

grpc::Status FakeScheduler::Generate(
    Context*, const GenerateRequest* request,
    grpc::ServerWriter<GenerateResponse>* writer) {
  {
    absl::MutexLock lock(&mutex_);
    generated_.push_back(*request);
  }
  for (const std::string& piece : text) {
    GenerateResponse response;
    response.set_text(piece);
    response.set_tokens(piece.size());
    writer->Write(response);
  }
  return grpc::Status::OK;
}

}  // namespace troupe
