#include "clients/cpp/client.h"

#include "gtest/gtest.h"
#include "proto/build_version.h"
#include "proto/protocol_version.h"
#include "tests/clients/cpp/fake_scheduler.h"

namespace troupe {
namespace {

bool Always() { return true; }

std::unique_ptr<Client> ConnectTo(const FakeJobScheduler& scheduler) {
  return Client::Connect(scheduler.address(), {.trust = {.insecure = 1}})
      .value();
}

TEST(Client, SaysWhichAddressWasTried) {
  const absl::Status status =
      Client::Connect("127.0.0.1:1", {.trust = {.insecure = 1},
                                      .connect = absl::Milliseconds(50)})
          .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  const std::string message(status.message());
  EXPECT_EQ(
      message.rfind("no scheduler answers at 127.0.0.1:1 (waited 50ms: ", 0),
      0u)
      << message;
  EXPECT_NE(message.find("Connection refused"), std::string::npos) << message;
  EXPECT_NE(message.find("; start a cluster with: troupe up --workers N "),
            std::string::npos)
      << message;
}

TEST(Client, IsToldWhoItMustShowItself) {
  EXPECT_EQ(Client::Connect("127.0.0.1:1", {}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(
      Client::Connect("10.0.0.1:1", {.trust = {.insecure = 1}}).status().code(),
      absl::StatusCode::kInvalidArgument);
}

TEST(Client, SubmitsAndKeepsTheRefusal) {
  FakeJobScheduler scheduler;
  const auto client = ConnectTo(scheduler);
  JobSpec job;
  job.set_name("demo");
  const SubmitJobResponse accepted = client->Submit(job).value();
  EXPECT_EQ(accepted.id(), 1);
  EXPECT_EQ(accepted.status().state(), QUEUED);
  EXPECT_EQ(scheduler.asked().submitted.at(0).name(), "demo");

  scheduler.refusal =
      absl::InvalidArgumentError("parallelism.data: 3 does not divide");
  const absl::Status refused = client->Submit(job).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(refused.message(), "parallelism.data: 3 does not divide");
}

// For a scheduler of another build.
TEST(Client, SaysItsVersionAndTheFieldsOfAJob) {
  FakeJobScheduler scheduler;
  JobSpec job;
  job.set_name("demo");
  job.mutable_training()->set_steps(3);
  ASSERT_TRUE(ConnectTo(scheduler)->Submit(job).ok());
  EXPECT_EQ(scheduler.asked().fields,
            (std::vector<std::string>{"name", "training", "training.steps"}));
  BuildVersion build;
  ASSERT_TRUE(build.ParseFromString(scheduler.asked().version));
  EXPECT_EQ(build.protocol(), kProtocolVersion);
  EXPECT_EQ(build.oldest_protocol(), kOldestProtocolVersion);
  EXPECT_EQ(build.build(), kBuildName);
}

TEST(Client, LeavesASubmissionThatIsNotAnswered) {
  FakeJobScheduler scheduler;
  scheduler.submit_hangs = true;
  const auto client = ConnectTo(scheduler);
  const absl::Status left =
      client
          ->Submit(JobSpec(),
                   [&] { return scheduler.asked().submitted.empty(); })
          .status();
  EXPECT_EQ(left.code(), absl::StatusCode::kCancelled) << left;
  scheduler.WaitForGoneSubmitter();
}

TEST(Client, FindsJobsAndWorkers) {
  FakeJobScheduler scheduler;
  scheduler.jobs.resize(2);
  scheduler.jobs[0].mutable_status()->set_id(7);
  scheduler.jobs[1].mutable_status()->set_id(8);
  scheduler.workers = [] { return std::vector<WorkerStatus>(3); };
  const auto client = ConnectTo(scheduler);
  EXPECT_EQ(client->ListJobs().value().jobs_size(), 2);
  EXPECT_EQ(client->Describe(8).value().status().id(), 8);
  EXPECT_EQ(client->Describe(9).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(client->Cancel(7).value().state(), CANCELLED);
  EXPECT_EQ(scheduler.asked().cancelled, std::vector<int64_t>{7});
  EXPECT_EQ(client->Workers().value().workers_size(), 3);
  EXPECT_EQ(client->Timeline({.id = 9}).status().code(),
            absl::StatusCode::kNotFound);
}

TEST(Client, WatchesToTheEnd) {
  FakeJobScheduler scheduler;
  scheduler.watch.resize(3);
  scheduler.watch[1].add_steps()->set_step(1);
  scheduler.watch[2].add_steps()->set_step(2);
  const auto client = ConnectTo(scheduler);
  std::vector<int64_t> steps;
  const absl::Status status = client->Watch(
      {.id = 5, .from_step = 3, .from_event = 4},
      [&](const WatchJobResponse& update) {
        for (const StepRecord& step : update.steps()) {
          steps.push_back(step.step());
        }
      },
      Always);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(steps, (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(scheduler.asked().watched.at(0).from_step(), 3);
  EXPECT_EQ(scheduler.asked().watched.at(0).from_event(), 4);
}

TEST(Client, LeavesAStreamThatHangs) {
  FakeJobScheduler scheduler;
  scheduler.watch.resize(1);
  scheduler.watch_hangs = true;
  const auto client = ConnectTo(scheduler);
  int updates = 0;
  const absl::Status status = client->Watch(
      {.id = 5}, [&](const WatchJobResponse&) { ++updates; },
      [&] { return updates == 0; });
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
  scheduler.WaitForGoneWatcher();
}

TEST(Client, SaysThatTheSchedulerIsGone) {
  auto scheduler = std::make_unique<FakeJobScheduler>();
  const std::string address = scheduler->address();
  const auto client = ConnectTo(*scheduler);
  scheduler.reset();
  const absl::Status status = client->ListJobs().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(status.message().find("lost the scheduler at " + address),
            std::string::npos)
      << status;
}

TEST(Client, StreamsText) {
  FakeJobScheduler scheduler;
  scheduler.text = {"In the ", "beginning"};
  const auto client = ConnectTo(scheduler);
  GenerateRequest request;
  request.set_prompt("x");
  std::string text;
  ASSERT_TRUE(client
                  ->Generate(
                      request,
                      [&](const GenerateResponse& r) { text += r.text(); },
                      Always)
                  .ok());
  EXPECT_EQ(text, "In the beginning");
  EXPECT_EQ(scheduler.asked().generated.at(0).prompt(), "x");
}

}  // namespace
}  // namespace troupe
