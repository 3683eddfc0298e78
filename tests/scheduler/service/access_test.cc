// Who may call what, on the scheduler's own server: which service is whose is
// said there, and nowhere else.
#include <functional>

#include "absl/strings/match.h"
#include "grpcpp/generic/generic_stub.h"
#include "gtest/gtest.h"
#include "proto/scheduler.grpc.pb.h"
#include "proto/trust/grpc/credentials.h"
#include "proto/trust/member_files.h"
#include "proto/trust/private_file.h"
#include "proto/worker.grpc.pb.h"
#include "tests/proto/trust/captured_log.h"
#include "tests/proto/trust/grpc/stranger.h"
#include "tests/proto/trust/made_up_members.h"
#include "tests/scheduler/service/served_cluster.h"

namespace troupe {
namespace {

class AccessTest : public testing::Test {
 protected:
  std::shared_ptr<grpc::Channel> ChannelWith(
      const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return grpc::CreateCustomChannel(served_.server.address(), credentials,
                                     arguments);
  }
  std::shared_ptr<grpc::Channel> ChannelOf(PeerRole role) {
    return ChannelWith(ChannelCredentials(members_.Member(role), role,
                                          served_.server.address())
                           .value());
  }

  // The code of the answer to an empty request.
  grpc::StatusCode Call(PeerRole role, const std::string& method) {
    return CallOver(ChannelOf(role), method);
  }
  static grpc::StatusCode CallOver(
      const std::shared_ptr<grpc::Channel>& channel,
      const std::string& method) {
    grpc::GenericStub stub(channel);
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() +
                         std::chrono::seconds(10));
    grpc::CompletionQueue queue;
    grpc::Slice empty;
    const auto call = stub.PrepareUnaryCall(
        &context, method, grpc::ByteBuffer(&empty, 1), &queue);
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
    return status.error_code();
  }

  const MadeUpMembers members_{"access"};
  ServedCluster served_{{}, members_.Member(PeerRole::kScheduler)};
};

// Of one who does not look at its own certificate first.
grpc::SslCredentialsOptions CarelessOptions(const PeerTrust& trust) {
  const MemberFiles files = FilesOfMember(trust.certificates);
  return {.pem_root_certs = ReadSmallFile(files.authority).value(),
          .pem_private_key = ReadSmallFile(files.key).value(),
          .pem_cert_chain = ReadSmallFile(files.certificate).value()};
}

std::vector<std::string> MethodsOf(const std::string& service) {
  const google::protobuf::ServiceDescriptor* const descriptor =
      google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(
          service);
  std::vector<std::string> methods;
  for (int i = 0; i < descriptor->method_count(); ++i) {
    methods.push_back(
        absl::StrCat("/", service, "/", descriptor->method(i)->name()));
  }
  return methods;
}

// What a later version adds to the protocol, too.
TEST_F(AccessTest, EveryRpcIsForOneRoleOnly) {
  for (const std::string& method : MethodsOf("troupe.Scheduler")) {
    EXPECT_EQ(Call(PeerRole::kWorker, method),
              grpc::StatusCode::PERMISSION_DENIED)
        << method;
  }
  for (const std::string& method : MethodsOf("troupe.Workers")) {
    EXPECT_EQ(Call(PeerRole::kClient, method),
              grpc::StatusCode::PERMISSION_DENIED)
        << method;
  }
  const std::string health = "/grpc.health.v1.Health/Check";
  EXPECT_EQ(Call(PeerRole::kClient, health), grpc::StatusCode::OK);
  EXPECT_EQ(Call(PeerRole::kWorker, health),
            grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(Call(PeerRole::kClient, "/troupe.Scheduler/ListJobs"),
            grpc::StatusCode::OK);
}

// Nobody comes to any RPC without a certificate that is good, be it gRPC's own.
TEST_F(AccessTest, AStrangerReachesNoRpc) {
  std::vector<std::string> methods = MethodsOf("troupe.Scheduler");
  for (const std::string& method : MethodsOf("troupe.Workers")) {
    methods.push_back(method);
  }
  methods.push_back("/grpc.health.v1.Health/Check");
  methods.push_back("/grpc.health.v1.Health/Watch");
  methods.push_back(
      "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo");
  methods.push_back("/troupe.None/Such");
  grpc::SslCredentialsOptions nothing_to_show;
  nothing_to_show.pem_root_certs =
      CarelessOptions(members_.Member(PeerRole::kClient)).pem_root_certs;
  const std::pair<const char*, std::shared_ptr<grpc::ChannelCredentials>>
      strangers[] = {
          {"no TLS", grpc::InsecureChannelCredentials()},
          {"no certificate", grpc::SslCredentials(nothing_to_show)},
          {"foreign", grpc::SslCredentials(CarelessOptions(
                          members_.Foreign(PeerRole::kClient)))},
          {"expired", grpc::SslCredentials(CarelessOptions(
                          members_.Expired(PeerRole::kClient)))},
          {"a scheduler's", grpc::SslCredentials(CarelessOptions(
                                members_.Member(PeerRole::kScheduler)))}};
  const CapturedLog log;
  const int served_before = served_.rpcs;
  for (const auto& [who, credentials] : strangers) {
    for (const std::string& method : methods) {
      const absl::Time start = absl::Now();
      EXPECT_EQ(CallOver(ChannelWith(credentials), method),
                grpc::StatusCode::UNAVAILABLE)
          << who << " " << method;
      EXPECT_LT(absl::Now() - start, absl::Seconds(5)) << who << " " << method;
    }
  }
  EXPECT_EQ(served_.rpcs, served_before);
  // Those before have taken some of the lines of these ten seconds.
  log.Await(1, "refused a peer: ");
  EXPECT_GE(log.Count("refused a peer: "), 1u);
  EXPECT_LE(log.Count("refused a peer: "), 40u);
}

TEST_F(AccessTest, AClientsCertificateRegistersNoWorker) {
  FakeWorker impostor(ChannelOf(PeerRole::kClient), "impostor");
  EXPECT_FALSE(impostor.Read().has_value());
  FakeWorker worker(ChannelOf(PeerRole::kWorker), "ada");
  EXPECT_TRUE(worker.Read()->has_registered());
  EXPECT_EQ(served_.host.Read([](const Cluster& cluster, absl::Time) {
    return cluster.workers().all().size();
  }),
            1u);
}

// In the time that the server itself gives them.
TEST_F(AccessTest, HalfAHandshakeEnds) {
  const std::string& address = served_.server.address();
  const int port = std::stoi(address.substr(address.rfind(':') + 1));
  EXPECT_LT(HungUpAfter(port, "\x16\x03\x01"),
            absl::Milliseconds(GrpcServer::kHandshakeMsMax + 2'000));
}

}  // namespace
}  // namespace troupe
