// A scheduler for tests of clients: a real gRPC server on a port of the
// kernel's, which answers from a script and remembers what it was asked.
#ifndef TROUPE_TESTS_CLIENTS_CPP_FAKE_SCHEDULER_H_
#define TROUPE_TESTS_CLIENTS_CPP_FAKE_SCHEDULER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "grpcpp/grpcpp.h"
#include "proto/scheduler.grpc.pb.h"
#include "proto/scheduler.pb.h"

namespace troupe {

// The script is set before the first call; a call of a job that is not in it is
// NOT_FOUND.
class FakeScheduler final : public Scheduler::Service {
 public:
  FakeScheduler();
  ~FakeScheduler() override;

  std::string address() const;

  // The script.
  grpc::Status refusal;                 // of SubmitJob, where not OK
  std::vector<JobDescription> jobs;     // found by status().id()
  std::vector<WatchJobResponse> watch;  // sent in order to every watcher
  bool watch_hangs = false;             // then the stream stays open
  std::vector<WorkerStatus> workers;
  GetTimelineResponse timeline;
  std::vector<std::string> text;  // of Generate

  // What was asked.
  std::vector<JobSpec> submitted() const;
  std::vector<WatchJobRequest> watched() const;
  std::vector<GenerateRequest> generated() const;
  std::vector<int64_t> cancelled() const;
  // Returns once a watcher of a hanging stream has gone.
  void WaitForGoneWatcher() { watcher_gone_.WaitForNotification(); }

 private:
  using Context = grpc::ServerContext;
  grpc::Status SubmitJob(Context*, const SubmitJobRequest* request,
                         SubmitJobResponse* response) override;
  grpc::Status PlanJob(Context*, const PlanJobRequest* request,
                       PlanJobResponse* response) override;
  grpc::Status ListJobs(Context*, const ListJobsRequest*,
                        ListJobsResponse* response) override;
  grpc::Status DescribeJob(Context*, const DescribeJobRequest* request,
                           JobDescription* response) override;
  grpc::Status WatchJob(Context* context, const WatchJobRequest* request,
                        grpc::ServerWriter<WatchJobResponse>* writer) override;
  grpc::Status CancelJob(Context*, const CancelJobRequest* request,
                         CancelJobResponse* response) override;
  grpc::Status GetTimeline(Context*, const GetTimelineRequest* request,
                           GetTimelineResponse* response) override;
  grpc::Status ListWorkers(Context*, const ListWorkersRequest*,
                           ListWorkersResponse* response) override;
  grpc::Status Generate(Context*, const GenerateRequest* request,
                        grpc::ServerWriter<GenerateResponse>* writer) override;
  const JobDescription* Find(int64_t id) const;

  mutable absl::Mutex mutex_;
  std::vector<JobSpec> submitted_ ABSL_GUARDED_BY(mutex_);
  std::vector<WatchJobRequest> watched_ ABSL_GUARDED_BY(mutex_);
  std::vector<GenerateRequest> generated_ ABSL_GUARDED_BY(mutex_);
  std::vector<int64_t> cancelled_ ABSL_GUARDED_BY(mutex_);
  absl::Notification watcher_gone_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace troupe

#endif  // TROUPE_TESTS_CLIENTS_CPP_FAKE_SCHEDULER_H_
