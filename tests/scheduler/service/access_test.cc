// Which roles may call what, on the scheduler's own server: which service is
// whose is said there, and nowhere else.
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

// Of one that does not look at its own certificate first.
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

// A peer with one host's certificate cannot pass for another one's worker.
TEST_F(AccessTest, AWorkerHasANameOfItsCertificates) {
  const auto channel = ChannelWith(
      ChannelCredentials(members_.WorkerNamed({"gpu-7", "gpu-7-*"}),
                         PeerRole::kWorker, served_.server.address())
          .value());
  for (const char* name : {"gpu-8", "gpu-70", "gpu"}) {
    FakeWorker impostor(channel, name);
    EXPECT_FALSE(impostor.Read().has_value()) << name;
    const grpc::Status refused = impostor.Finish();
    EXPECT_EQ(refused.error_code(), grpc::StatusCode::PERMISSION_DENIED);
    EXPECT_TRUE(absl::StartsWith(
        refused.error_message(),
        "the worker's certificate is for the name gpu-7, gpu-7-*, not for "))
        << refused.error_message();
  }
  for (const char* name : {"gpu-7", "gpu-7-0"}) {
    FakeWorker worker(channel, name);
    EXPECT_TRUE(worker.Read()->has_registered()) << name;
  }
}

// It tries again twice a second, and so do all workers of its cluster.
TEST_F(AccessTest, WorkersThatAreRefusedDoNotFloodTheLog) {
  const CapturedLog log;
  const auto channel = ChannelWith(
      ChannelCredentials(members_.WorkerNamed({"gpu-7"}), PeerRole::kWorker,
                         served_.server.address())
          .value());
  for (int i = 0; i < 50; ++i) {
    FakeWorker worker(channel, absl::StrCat("gpu-8-", i));
    EXPECT_FALSE(worker.Read().has_value());
    worker.Finish();
  }
  log.Await(1, "refused a peer: the worker gpu-8-");
  EXPECT_LE(log.Count("refused a peer: the worker gpu-8-"), 40u);
}

// A certificate that binds its holder to no name would take every worker's
// seat.
TEST_F(AccessTest, AWorkerWhoseCertificateSaysNoNameIsRefused) {
  const auto channel = ChannelWith(ChannelCredentials(members_.UnnamedWorker(),
                                                      PeerRole::kWorker,
                                                      served_.server.address())
                                       .value());
  FakeWorker worker(channel, "gpu-7");
  EXPECT_FALSE(worker.Read().has_value());
  const grpc::Status refused = worker.Finish();
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_TRUE(absl::StrContains(
      refused.error_message(),
      "troupe cluster certificate HOST --role worker --name gpu-7"))
      << refused.error_message();
}

TEST_F(AccessTest, AnOperatorMayTakeItForAnyName) {
  ServedCluster served({}, members_.Member(PeerRole::kScheduler),
                       absl::Seconds(10), /*unnamed_workers=*/true);
  const CapturedLog log;
  const auto channel_with = [&](const PeerTrust& trust) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return grpc::CreateCustomChannel(
        served.server.address(),
        ChannelCredentials(trust, PeerRole::kWorker, served.server.address())
            .value(),
        arguments);
  };
  FakeWorker unnamed(channel_with(members_.UnnamedWorker()), "gpu-7");
  const auto answer = unnamed.Read();
  EXPECT_TRUE(answer.has_value() && answer->has_registered());
  log.Await(1, "says no worker's name and is taken for any");
  // One that says names is held to them all the same.
  FakeWorker named(channel_with(members_.WorkerNamed({"gpu-8"})), "gpu-9");
  EXPECT_FALSE(named.Read().has_value());
  EXPECT_EQ(named.Finish().error_code(), grpc::StatusCode::PERMISSION_DENIED);
}

TEST_F(AccessTest, WhoSubmitsAndCancelsIsRecorded) {
  const auto stub = Scheduler::NewStub(ChannelOf(PeerRole::kClient));
  SubmitJobRequest submit;
  *submit.mutable_job() = SpecOf(1);
  SubmitJobResponse submitted;
  ASSERT_TRUE(stub->SubmitJob(troupe::Call().get(), submit, &submitted).ok());
  EXPECT_EQ(submitted.status().submitted_by(), "127.0.0.1")
      << "the name in the certificate";
  CancelJobRequest cancel;
  cancel.set_id(submitted.id());
  CancelJobResponse cancelled;
  ASSERT_TRUE(stub->CancelJob(troupe::Call().get(), cancel, &cancelled).ok());
  DescribeJobRequest describe;
  describe.set_id(submitted.id());
  JobDescription job;
  ASSERT_TRUE(stub->DescribeJob(troupe::Call().get(), describe, &job).ok());
  ASSERT_EQ(job.events_size(), 4);
  EXPECT_EQ(job.events(1).text(), "submitted by 127.0.0.1");
  EXPECT_EQ(job.events(2).text(), "cancelled by 127.0.0.1");
}

TEST_F(AccessTest, WhoCordonsIsLogged) {
  FakeWorker worker(ChannelOf(PeerRole::kWorker), "w0");
  ASSERT_TRUE(worker.Read()->has_registered());
  const auto stub = Scheduler::NewStub(ChannelOf(PeerRole::kClient));
  const CapturedLog log;
  CordonWorkerRequest request;
  request.set_name("w0");
  CordonWorkerResponse response;
  for (const char* why : {"its fan\nis broken", ""}) {
    request.set_cordon(*why != '\0');
    request.set_why(why);
    ASSERT_TRUE(
        stub->CordonWorker(troupe::Call().get(), request, &response).ok());
  }
  for (const char* line :
       {"worker w0 cordoned by 127.0.0.1: its fan\\nis broken",
        "worker w0 put back by 127.0.0.1"}) {
    const std::string text = log.Await(1, line);
    EXPECT_EQ(log.Count(line), 1u) << text;
  }
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
