#include "clients/cpp/rpc_status.h"

#include "gtest/gtest.h"

namespace troupe {
namespace {

absl::Status Convert(grpc::StatusCode code, const std::string& message) {
  return RpcStatus(grpc::Status(code, message), "host:1");
}

TEST(RpcStatus, KeepsWhatTheSchedulerSays) {
  EXPECT_TRUE(RpcStatus(grpc::Status::OK, "host:1").ok());
  EXPECT_EQ(Convert(grpc::StatusCode::NOT_FOUND, "no job 3"),
            absl::NotFoundError("no job 3"));
  EXPECT_EQ(Convert(grpc::StatusCode::UNAVAILABLE, "no idle worker"),
            absl::UnavailableError("no idle worker"));
  EXPECT_EQ(Convert(grpc::StatusCode::DEADLINE_EXCEEDED, "planning took long"),
            absl::DeadlineExceededError("planning took long"));
}

TEST(RpcStatus, ExplainsWhatGrpcSays) {
  const absl::Status lost =
      Convert(grpc::StatusCode::UNAVAILABLE, "Socket closed");
  EXPECT_EQ(lost.message().substr(0, 48),
            "lost the scheduler at host:1 (Socket closed); is");
  EXPECT_EQ(Convert(grpc::StatusCode::DEADLINE_EXCEEDED, "Deadline Exceeded"),
            absl::DeadlineExceededError(
                "the scheduler at host:1 did not answer in time"));
  EXPECT_EQ(Convert(grpc::StatusCode::UNIMPLEMENTED, ""),
            absl::UnimplementedError("what answers at host:1 is no "
                                     "troupe-scheduler of this version"));
}

}  // namespace
}  // namespace troupe
