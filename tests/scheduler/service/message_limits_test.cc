#include "scheduler/service/message_limits.h"

#include <string>

#include "gtest/gtest.h"
#include "proto/scheduler.pb.h"
#include "tests/scheduler/service/served_cluster.h"

namespace troupe {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

TEST(MessageLimits, EachKindHasItsOwn) {
  SubmitJobRequest job;
  job.mutable_job()->set_name(std::string(kJobBytesMax - 100, 'x'));
  EXPECT_TRUE(CheckRequestSize(job).ok());
  job.mutable_job()->set_name(std::string(kJobBytesMax, 'x'));
  const absl::Status large = CheckRequestSize(job);
  EXPECT_TRUE(absl::IsResourceExhausted(large));
  EXPECT_EQ(large.message(),
            "the job has 65544 bytes, and at most 65536 are taken; it says "
            "what is trained and how, and names files for all else");
  GenerateRequest text;
  text.set_prompt(std::string(2 * kMiB, 'x'));
  EXPECT_TRUE(CheckRequestSize(text).ok());
  text.set_prompt(std::string(4 * kMiB, 'x'));
  EXPECT_FALSE(CheckRequestSize(text).ok());

  WorkerMessage message;
  message.mutable_checkpoint_job()->set_error(std::string(20 * kMiB, 'x'));
  EXPECT_TRUE(CheckWorkerMessageSize(message).ok());
  message.mutable_ended()->set_error(std::string(2 * kMiB, 'x'));
  EXPECT_EQ(CheckWorkerMessageSize(message).message().substr(0, 14),
            "RankEnded has ");
}

// And they are looked at: unknown fields, which a parser keeps, count as well.
TEST(MessageLimits, WhatIsTooLargeIsRefusedAndOthersGoOn) {
  ServedCluster served;
  ListJobsRequest request;
  request.GetReflection()->MutableUnknownFields(&request)->AddLengthDelimited(
      77, std::string(kMiB, 'x'));
  ListJobsResponse response;
  EXPECT_EQ(
      served.stub->ListJobs(Call().get(), request, &response).error_code(),
      grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_TRUE(
      served.stub->ListJobs(Call().get(), ListJobsRequest(), &response).ok());

  const auto worker = served.Join("w0");
  WorkerMessage message;
  message.mutable_goodbye()->set_reason(std::string(2 * kMiB, 'x'));
  worker->Write(message);
  EXPECT_FALSE(worker->Read().has_value());
  EXPECT_EQ(worker->Finish().error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_NE(served.Join("w1"), nullptr);
}

}  // namespace
}  // namespace troupe
