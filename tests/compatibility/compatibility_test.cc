// This build's scheduler on the stores of earlier versions, and with what their
// workers and clients say (README.md).
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/build_version.h"
#include "proto/protocol_version.h"
#include "scheduler/daemon.h"
#include "scheduler/store/store.h"
#include "tests/scheduler/service/served_cluster.h"

namespace troupe {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Those that are recorded.
constexpr int kVersions[] = {15, 16, 17, 18, 19, 20, 21, 22, 23};
// From this one on, clients say their version with each call.
constexpr int kClientsSayVersion = 16;

class CompatibilityTest : public testing::TestWithParam<int> {
 protected:
  // On a copy of the version's store.
  void SetUp() override {
    state_ = fs::path(testing::TempDir()) /
             absl::StrCat(
                 "protocol_", GetParam(), "_",
                 testing::UnitTest::GetInstance()->current_test_info()->line());
    fs::remove_all(state_);
    fs::create_directories(state_);
    std::ofstream(state_ / "troupe.db") << Recorded("troupe.db");
    Restart();
  }

  void Restart() {
    daemon_.reset();
    auto started =
        SchedulerDaemon::Start({.state = state_, .trust = {.insecure = 1}});
    ASSERT_TRUE(started.ok()) << started.status();
    daemon_ = *std::move(started);
    channel_ = grpc::CreateChannel(daemon_->grpc_address(),
                                   grpc::InsecureChannelCredentials());
    stub_ = Scheduler::NewStub(channel_);
  }

  static std::string Recorded(const std::string& file) {
    std::ostringstream bytes;
    std::ifstream in(
        absl::StrCat("tests/compatibility/protocol_", GetParam(), "/", file));
    EXPECT_TRUE(in.good()) << file;
    bytes << in.rdbuf();
    return bytes.str();
  }

  JobDescription Describe(int64_t job) {
    DescribeJobRequest request;
    request.set_id(job);
    JobDescription description;
    const grpc::Status status =
        stub_->DescribeJob(Call().get(), request, &description);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return description;
  }

  fs::path state_;
  std::unique_ptr<SchedulerDaemon> daemon_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<Scheduler::Stub> stub_;
};

TEST_P(CompatibilityTest, ItsJobsAreThereAndGoOn) {
  for (int start = 0; start < 2; ++start) {  // once read, once written
    ListJobsResponse jobs;
    ASSERT_TRUE(stub_->ListJobs(Call().get(), {}, &jobs).ok());
    ASSERT_EQ(jobs.jobs_size(), 4);
    const JobDescription succeeded = Describe(1);
    EXPECT_EQ(succeeded.status().state(), SUCCEEDED);
    EXPECT_EQ(succeeded.status().steps_done(), 4);
    EXPECT_EQ(succeeded.status().checkpoints_size(), 2);
    EXPECT_EQ(succeeded.status().name(), "tiny");
    EXPECT_EQ(succeeded.steps_size(), 4);
    EXPECT_EQ(succeeded.events().rbegin()->text(), "succeeded");
    EXPECT_EQ(Describe(2).status().state(), CANCELLED);
    // Its ranks are awaited, or it has lost them meanwhile.
    EXPECT_NE(Describe(3).status().state(), SUCCEEDED);
    EXPECT_EQ(Describe(3).plan().job().recovery().every(), "5");
    EXPECT_EQ(Describe(4).status().state(), QUEUED);
    EXPECT_EQ(Describe(4).status().reason(),
              "waits for 8 workers; none is registered");
    Restart();
  }
}

// The job that runs goes on from its copies only if this build can carry on the
// plan that its ranks were handed.
TEST_P(CompatibilityTest, ItsPlanIsCarriedOnOrTheLogSaysWhyNot) {
  daemon_.reset();
  const auto store = Store::Open(state_.string());
  ASSERT_TRUE(store.ok()) << store.status();
  const auto loaded = (*store)->Load({});
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  const auto running = std::find_if(
      loaded->jobs.begin(), loaded->jobs.end(),
      [](const StoredJob& job) { return job.row.status.id() == 3; });
  ASSERT_NE(running, loaded->jobs.end());
  if (GetParam() >= kOldestProtocolVersion) {
    EXPECT_NE(running->hand_out, nullptr);
    EXPECT_THAT(loaded->complaints, IsEmpty());
    return;
  }
  EXPECT_EQ(running->hand_out, nullptr);
  EXPECT_THAT(loaded->complaints,
              ElementsAre(AllOf(
                  HasSubstr("job 3 (recovers): its plan was made by "),
                  HasSubstr(absl::StrCat("whose plans ", kBuildName,
                                         " does not carry on; the job goes on "
                                         "from its newest checkpoint")))));
}

TEST_P(CompatibilityTest, ItsClientIsServedOrToldWhyNot) {
  SubmitJobRequest request;
  ASSERT_TRUE(request.ParseFromString(Recorded("submit_job.bin")));
  const auto context = Call();
  const bool says_version = GetParam() >= kClientsSayVersion;
  if (says_version) {
    BuildVersion build;
    build.set_build("recorded");
    build.set_protocol(GetParam());
    build.set_oldest_protocol(GetParam());
    context->AddMetadata(kBuildVersionKey, build.SerializeAsString());
  }
  SubmitJobResponse response;
  const grpc::Status status =
      stub_->SubmitJob(context.get(), request, &response);
  if (says_version && GetParam() < kOldestProtocolVersion) {
    EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
    EXPECT_THAT(status.error_message(),
                HasSubstr(absl::StrCat("the client is recorded and speaks "
                                       "protocol version ",
                                       GetParam(), ";")));
    EXPECT_THAT(status.error_message(),
                HasSubstr("install one build on both (the former is older)"));
    return;
  }
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response.id(), 5);
  EXPECT_EQ(response.status().state(), QUEUED);
}

TEST_P(CompatibilityTest, ItsWorkerIsTakenOrToldWhyNot) {
  WorkerMessage message;
  ASSERT_TRUE(message.ParseFromString(Recorded("register.bin")));
  const auto stub = Workers::NewStub(channel_);
  const auto context = Call();
  const auto session = stub->Session(context.get());
  session->Write(message);
  SchedulerMessage answer;
  const bool is_understood = GetParam() >= kOldestProtocolVersion;
  ASSERT_EQ(session->Read(&answer), is_understood);
  if (is_understood) {
    EXPECT_TRUE(answer.has_registered());
    context->TryCancel();
    session->Finish();
    return;
  }
  const grpc::Status refused = session->Finish();
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(refused.error_message(), HasSubstr(absl::StrCat("worker-0 is ")));
  EXPECT_THAT(refused.error_message(),
              HasSubstr(absl::StrCat("protocol version ", GetParam(), ";")));
  EXPECT_THAT(refused.error_message(),
              HasSubstr(absl::StrCat("protocol version ", kProtocolVersion)));
  EXPECT_THAT(refused.error_message(),
              HasSubstr("install one build on both (the former is older)"));
}

TEST(Versions, AllBeforeThisOneAreRecorded) {
  int32_t next = kVersions[0];
  for (const int version : kVersions) EXPECT_EQ(version, next++);
  EXPECT_EQ(next, kProtocolVersion)
      << "record the version that was before kProtocolVersion was raised: "
         "tests/compatibility/README.md";
}

// What is tested of versions that are understood, and what by nothing.
TEST(Versions, ThatAreUnderstoodAreRecorded) {
  ASSERT_LE(kOldestProtocolVersion, kProtocolVersion);
  if (kOldestProtocolVersion == kProtocolVersion) {
    GTEST_SKIP() << "protocol " << kProtocolVersion << " understands no older "
                 << "one: nothing tests that an older worker, client or plan "
                 << "is understood, but that each is refused";
  }
  EXPECT_GE(kOldestProtocolVersion, kVersions[0]);
}

INSTANTIATE_TEST_SUITE_P(Versions, CompatibilityTest,
                         testing::ValuesIn(kVersions));

}  // namespace
}  // namespace troupe
