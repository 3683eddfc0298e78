#include "tests/bench/scheduler_scale/flood.h"

#include "grpcpp/grpcpp.h"
#include "proto/scheduler.grpc.pb.h"

namespace troupe {

Flood::Flood(const Options& options) {
  for (int client = 0; client < options.clients; ++client) {
    threads_.emplace_back([this, options, client] { Ask(options, client); });
  }
}

Flood::~Flood() {
  stopping_ = true;
  for (std::thread& thread : threads_) thread.join();
}

void Flood::Ask(const Options& options, int client) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetMaxReceiveMessageSize(-1);
  const auto stub = Scheduler::NewStub(grpc::CreateCustomChannel(
      options.scheduler, grpc::InsecureChannelCredentials(), arguments));
  DescribeJobRequest job;
  job.set_id(options.job);
  for (int i = client; !stopping_; ++i) {
    grpc::ClientContext context;
    grpc::Status status;
    if (i % 3 == 0) {
      ListJobsResponse jobs;
      status = stub->ListJobs(&context, ListJobsRequest(), &jobs);
    } else if (i % 3 == 1) {
      ListWorkersResponse workers;
      status = stub->ListWorkers(&context, ListWorkersRequest(), &workers);
    } else {
      JobDescription description;
      status = stub->DescribeJob(&context, job, &description);
    }
    ++(status.ok() ? answered_ : refused_);
  }
}

}  // namespace troupe
