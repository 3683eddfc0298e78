#include "clients/cpp/rpc_stream.h"

#include "gtest/gtest.h"
#include "proto/scheduler.grpc.pb.h"
#include "tests/clients/cpp/fake_scheduler.h"

namespace troupe {
namespace {

class RpcStreamTest : public testing::Test {
 protected:
  RpcStreamTest()
      : stub_(Scheduler::NewStub(grpc::CreateChannel(
            scheduler_.address(), grpc::InsecureChannelCredentials()))) {
    for (int64_t id = 1; id <= 3; ++id) {
      scheduler_.watch.emplace_back().mutable_status()->set_id(id);
    }
  }

  absl::Status Read(absl::Duration deadline,
                    const std::function<bool()>& keep_going) {
    return ReadStream<WatchJobResponse>(
        "the fake", deadline,
        [&](grpc::ClientContext* context, grpc::CompletionQueue* queue) {
          return stub_->PrepareAsyncWatchJob(context, WatchJobRequest(), queue);
        },
        [&](const WatchJobResponse& update) {
          ids_.push_back(update.status().id());
        },
        keep_going);
  }

  FakeJobScheduler scheduler_;
  std::unique_ptr<Scheduler::Stub> stub_;
  std::vector<int64_t> ids_;
};

TEST_F(RpcStreamTest, HandsMessagesOverInOrder) {
  EXPECT_TRUE(Read(absl::Seconds(30), [] { return true; }).ok());
  EXPECT_EQ(ids_, (std::vector<int64_t>{1, 2, 3}));
}

TEST_F(RpcStreamTest, EndsWhenItIsToldTo) {
  scheduler_.watch_hangs = true;
  const absl::Status status =
      Read(absl::Minutes(5), [&] { return ids_.size() < 3; });
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(ids_.size(), 3);
  scheduler_.WaitForGoneWatcher();
}

TEST_F(RpcStreamTest, EndsAtItsDeadline) {
  scheduler_.watch_hangs = true;
  const absl::Status status =
      Read(absl::Milliseconds(300), [] { return true; });
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_NE(status.message().find("the fake"), std::string::npos) << status;
  scheduler_.WaitForGoneWatcher();
}

TEST_F(RpcStreamTest, NeverStartsWhatNobodyWants) {
  EXPECT_EQ(Read(absl::Minutes(5), [] { return false; }).code(),
            absl::StatusCode::kCancelled);
  EXPECT_TRUE(ids_.empty());
}

}  // namespace
}  // namespace troupe
