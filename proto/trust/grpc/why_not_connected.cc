#include "proto/trust/grpc/why_not_connected.h"

#include <chrono>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/grpcpp.h"
#include "proto/base/one_line.h"

namespace troupe {
namespace {

constexpr std::chrono::seconds kPatience{1};
constexpr size_t kBytesMax = 300;

// A call that no server knows: it fails with what gRPC knows of the channel.
std::string LastError(const std::shared_ptr<grpc::Channel>& channel) {
  grpc::GenericStub stub(channel);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kPatience);
  grpc::CompletionQueue queue;
  const auto call = stub.PrepareUnaryCall(&context, "/troupe.Nothing/Ask",
                                          grpc::ByteBuffer(), &queue);
  call->StartCall();
  grpc::ByteBuffer answer;
  grpc::Status status;
  call->Finish(&answer, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  queue.Shutdown();
  while (queue.Next(&tag, &ok)) {
  }
  return status.error_message();
}

}  // namespace

std::string WhyNotConnected(const std::shared_ptr<grpc::Channel>& channel) {
  std::string error = LastError(channel);
  const std::string said_before = "last error: ";
  const size_t last = error.find(said_before);
  if (last != error.npos) error.erase(0, last + said_before.size());
  error = OneLine(error, kBytesMax);
  if (absl::StrContains(error, "andshake") ||
      absl::StrContains(error, "certificate")) {
    return absl::StrCat("it and this process do not know each other by their ",
                        "certificates: ", error);
  }
  // So it looks to a client where a server wants TLS, or another certificate.
  if (absl::StrContains(error, "Socket closed") ||
      absl::StrContains(error, "settings")) {
    return absl::StrCat("what answers there hangs up: it wants a certificate ",
                        "that it knows, or is no scheduler: ", error);
  }
  return error;
}

}  // namespace troupe
