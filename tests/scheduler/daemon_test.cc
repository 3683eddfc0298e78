#include "scheduler/daemon.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "httplib.h"
#include "nlohmann/json.hpp"
#include "proto/base/process_state.h"
#include "proto/trust/cluster_trust.h"
#include "tests/scheduler/service/served_cluster.h"

namespace troupe {
namespace {

JobSpec SmallJob() {
  JobSpec spec;
  spec.set_name("small");
  spec.mutable_model()->set_architecture("gpt2");
  spec.mutable_model()->set_num_hidden_layers(2);
  spec.mutable_model()->set_hidden_size(32);
  spec.mutable_model()->set_num_attention_heads(2);
  spec.mutable_model()->set_vocab_size(256);
  spec.mutable_model()->set_max_position_embeddings(16);
  spec.mutable_data()->set_tokens("some.tokens");
  spec.mutable_training()->set_steps(3);
  spec.mutable_training()->set_global_batch_size(4);
  spec.mutable_training()->set_micro_batch_size(1);
  spec.mutable_optimizer()->set_lr(1e-3);
  return spec;
}

class DaemonTest : public testing::Test {
 protected:
  void SetUp() override {
    state_ = testing::TempDir() + "/daemon-" +
             testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(state_);
    Restart();
  }
  void Restart() {
    daemon_.reset();
    daemon_ =
        *SchedulerDaemon::Start({.state = state_, .trust = {.insecure = 1}});
    channel_ = grpc::CreateChannel(daemon_->grpc_address(),
                                   grpc::InsecureChannelCredentials());
    stub_ = Scheduler::NewStub(channel_);
  }
  grpc::Status Submit(const JobSpec& spec, int64_t* id) {
    SubmitJobRequest request;
    *request.mutable_job() = spec;
    SubmitJobResponse response;
    const grpc::Status status =
        stub_->SubmitJob(Call().get(), request, &response);
    *id = response.id();
    return status;
  }
  JobStatus Describe(int64_t id) {
    DescribeJobRequest request;
    request.set_id(id);
    JobDescription description;
    CHECK(stub_->DescribeJob(Call().get(), request, &description).ok());
    return description.status();
  }

  std::string state_;
  std::unique_ptr<SchedulerDaemon> daemon_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<Scheduler::Stub> stub_;
};

TEST_F(DaemonTest, SaysWhereItServes) {
  std::stringstream text;
  text << std::ifstream(state_ + "/endpoints.json").rdbuf();
  const auto endpoints = nlohmann::json::parse(text.str());
  EXPECT_EQ(endpoints["grpc"], daemon_->grpc_address());
  EXPECT_EQ(endpoints["http"], daemon_->http_url());
  EXPECT_EQ(endpoints["security"], "none");
  EXPECT_EQ(endpoints["host"], HostName());
  EXPECT_EQ(endpoints["boot"], ThisProcessSpace().boot);
  EXPECT_EQ(endpoints["pids"], ThisProcessSpace().pids);
  EXPECT_EQ(endpoints["pid"], getpid());
  EXPECT_EQ(endpoints["start_ticks"], Identify(getpid()).start_ticks);
  httplib::Client client(daemon_->http_url());
  EXPECT_EQ(client.Get("/healthz")->body, "ok\n");
  EXPECT_EQ(client.Get("/metrics")->status, 401);
  std::string token;
  std::ifstream(PageTokenFile(state_)) >> token;
  client.set_bearer_token_auth(token.c_str());
  EXPECT_EQ(client.Get("/metrics")->status, 200);
  daemon_.reset();
  EXPECT_FALSE(std::filesystem::exists(state_ + "/endpoints.json"));
}

TEST_F(DaemonTest, ALinkIsGoodAfterARestart) {
  std::string before;
  std::ifstream(PageTokenFile(state_)) >> before;
  Restart();
  std::string after;
  std::ifstream(PageTokenFile(state_)) >> after;
  EXPECT_EQ(before.size(), 64u);
  EXPECT_EQ(after, before);
}

// None in its state directory, and none given.
TEST_F(DaemonTest, WantsACertificate) {
  daemon_.reset();
  const absl::Status without =
      SchedulerDaemon::Start({.state = state_}).status();
  EXPECT_TRUE(absl::StrContains(without.message(), state_)) << without;
  CHECK_OK(EnsureClusterTrust(state_, absl::Now()));
  EXPECT_TRUE(SchedulerDaemon::Start({.state = state_}).ok());
}

TEST_F(DaemonTest, ASecondOneIsRefused) {
  const absl::Status second =
      SchedulerDaemon::Start({.state = state_, .trust = {.insecure = 1}})
          .status();
  EXPECT_TRUE(absl::IsFailedPrecondition(second)) << second;
  EXPECT_TRUE(absl::StrContains(second.message(), state_));
}

TEST_F(DaemonTest, RemembersAcrossARestart) {
  int64_t queued = 0, running = 0;
  auto worker = std::make_unique<FakeWorker>(channel_, "w0");
  ASSERT_TRUE(worker->Read()->has_registered());
  // The budget of a fake worker is too small for any model.
  EXPECT_EQ(Submit(SmallJob(), &running).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  worker.reset();
  Register large = RegisterOf("w1");
  large.mutable_worker()->mutable_budgets(0)->set_bytes(1 << 30);
  auto stub = Workers::NewStub(channel_);
  auto context = Call();
  auto stream = stub->Session(context.get());
  WorkerMessage hello;
  *hello.mutable_register_() = large;
  stream->Write(hello);
  SchedulerMessage message;
  ASSERT_TRUE(stream->Read(&message));
  ASSERT_TRUE(Submit(SmallJob(), &running).ok());
  ASSERT_TRUE(stream->Read(&message));
  ASSERT_TRUE(message.has_start());
  WorkerMessage step;
  *step.mutable_step()->mutable_ref() = message.start().ref();
  step.mutable_step()->mutable_record()->set_step(1);
  stream->Write(step);
  WorkerMessage committed;
  *committed.mutable_committed()->mutable_ref() = message.start().ref();
  committed.mutable_committed()->mutable_checkpoint()->set_path("/c/step-1");
  stream->Write(committed);
  while (Describe(running).checkpoints().empty()) {
  }
  JobSpec wide = SmallJob();
  wide.mutable_parallelism()->set_data(4);
  ASSERT_TRUE(Submit(wide, &queued).ok());
  Restart();
  context->TryCancel();
  stream->Finish();

  // It was in its start, for its rank had not said that it is ready.
  EXPECT_EQ(Describe(running).state(), STARTING);
  EXPECT_EQ(Describe(running).reason(),
            "the scheduler restarted; waits for w1");
  EXPECT_EQ(Describe(running).steps_done(), 1);
  EXPECT_EQ(Describe(queued).state(), QUEUED);
  int64_t next = 0;
  ASSERT_TRUE(Submit(SmallJob(), &next).ok());
  EXPECT_EQ(next, queued + 1);
}

}  // namespace
}  // namespace troupe
