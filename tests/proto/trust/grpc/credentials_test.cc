#include "proto/trust/grpc/credentials.h"

#include <openssl/ssl.h>

#include <chrono>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "proto/scheduler.grpc.pb.h"
#include "proto/trust/grpc/why_not_connected.h"
#include "proto/trust/member_files.h"
#include "proto/trust/private_file.h"
#include "proto/worker.grpc.pb.h"
#include "tests/proto/trust/captured_log.h"
#include "tests/proto/trust/grpc/stranger.h"
#include "tests/proto/trust/made_up_members.h"

namespace troupe {
namespace {

using ServerTrust = std::shared_ptr<grpc::ServerCredentials>;
constexpr char kRefused[] = "refused a peer: ";

using ChannelTrust = std::shared_ptr<grpc::ChannelCredentials>;

// Both services, which answer everybody that is let in with UNIMPLEMENTED.
class Served {
 public:
  explicit Served(const ServerTrust& credentials) {
    grpc::ServerBuilder builder;
    builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, 300);
    builder.AddListeningPort("127.0.0.1:0", credentials, &port_);
    builder.RegisterService(&workers_);
    builder.RegisterService(&scheduler_);
    server_ = builder.BuildAndStart();
  }
  ~Served() { server_->Shutdown(std::chrono::system_clock::now()); }

  int port() const { return port_; }
  std::string address() const { return absl::StrCat("127.0.0.1:", port_); }

 private:
  Workers::Service workers_;
  Scheduler::Service scheduler_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

std::shared_ptr<grpc::Channel> ChannelTo(const std::string& address,
                                         const ChannelTrust& credentials) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(address, credentials, arguments);
}

void SetDeadline(grpc::ClientContext& context) {
  context.set_deadline(std::chrono::system_clock::now() +
                       std::chrono::seconds(10));
}

// What a channel gets to hear as a client, then as a worker.
struct Answers {
  Answers(const std::string& address, const ChannelTrust& credentials) {
    const auto channel = ChannelTo(address, credentials);
    grpc::ClientContext first;
    SetDeadline(first);
    ListJobsResponse response;
    as_client = Scheduler::NewStub(channel)->ListJobs(&first, ListJobsRequest(),
                                                      &response);
    grpc::ClientContext second;
    SetDeadline(second);
    as_worker = Workers::NewStub(channel)->Session(&second)->Finish();
  }
  grpc::Status as_client;
  grpc::Status as_worker;
};

ServerTrust SchedulersCredentials(const PeerTrust& trust) {
  return ServerCredentials(trust,
                           {{"/troupe.Workers/", PeerRole::kWorker},
                            {"/troupe.Scheduler/", PeerRole::kClient}},
                           "127.0.0.1:0")
      .value();
}

std::string PemOf(const std::string& path) {
  return ReadSmallFile(path).value();
}

// As one that does not look at its own certificate first.
ChannelTrust Careless(const PeerTrust& trust) {
  const MemberFiles files = FilesOfMember(trust.certificates);
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = PemOf(files.authority);
  options.pem_private_key = PemOf(files.key);
  options.pem_cert_chain = PemOf(files.certificate);
  return grpc::SslCredentials(options);
}

ServerTrust CarelessServer(const PeerTrust& trust) {
  const MemberFiles files = FilesOfMember(trust.certificates);
  grpc::SslServerCredentialsOptions options;
  options.pem_key_cert_pairs = {{PemOf(files.key), PemOf(files.certificate)}};
  return grpc::SslServerCredentials(options);
}

class CredentialsTest : public testing::Test {
 protected:
  Answers Ask(PeerRole role) const {
    return {served_.address(),
            ChannelCredentials(members_.Member(role), role, served_.address())
                .value()};
  }
  void ExpectRefused(const ChannelTrust& credentials) const {
    const absl::Time start = absl::Now();
    const Answers answers(served_.address(), credentials);
    EXPECT_EQ(answers.as_client.error_code(), grpc::StatusCode::UNAVAILABLE);
    EXPECT_EQ(answers.as_worker.error_code(), grpc::StatusCode::UNAVAILABLE);
    EXPECT_LT(absl::Now() - start, absl::Seconds(5));
  }
  const MadeUpMembers members_{"credentials"};
  const Served served_{
      SchedulersCredentials(members_.Member(PeerRole::kScheduler))};
};

TEST_F(CredentialsTest, EachRoleHasItsService) {
  const Answers client = Ask(PeerRole::kClient);
  EXPECT_EQ(client.as_client.error_code(), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_EQ(client.as_worker.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_TRUE(
      absl::StrContains(client.as_worker.error_message(), "is for a worker"))
      << client.as_worker.error_message();
  const Answers worker = Ask(PeerRole::kWorker);
  EXPECT_EQ(worker.as_client.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(worker.as_worker.error_code(), grpc::StatusCode::UNIMPLEMENTED);
}

// A scheduler serves; it asks for nothing.
TEST_F(CredentialsTest, ASchedulersCertificateOpensNoDoor) {
  ExpectRefused(Careless(members_.Member(PeerRole::kScheduler)));
}

TEST_F(CredentialsTest, StrangersAreRefusedAndEachIsALineOfTheLog) {
  const CapturedLog captured;
  for (const PeerRole role : {PeerRole::kClient, PeerRole::kWorker}) {
    ExpectRefused(Careless(members_.Expired(role)));
    ExpectRefused(Careless(members_.Foreign(role)));
  }
  ExpectRefused(grpc::InsecureChannelCredentials());
  grpc::SslCredentialsOptions nothing_to_show;
  nothing_to_show.pem_root_certs = PemOf(
      FilesOfMember(members_.Member(PeerRole::kClient).certificates).authority);
  ExpectRefused(grpc::SslCredentials(nothing_to_show));
  const std::string log = captured.Await(6, kRefused);
  EXPECT_TRUE(absl::StrContains(log, "of another authority, or expired"))
      << log;
  EXPECT_TRUE(absl::StrContains(log, "peer did not return a certificate"))
      << log;
  EXPECT_TRUE(absl::StrContains(log, "wrong version number")) << log;
  EXPECT_GE(captured.Count(kRefused), 6u) << log;
}

TEST_F(CredentialsTest, SilenceAndGarbageAreHungUpOnSoon) {
  const CapturedLog captured;
  const std::string garbage(4096, '\xa5');
  // The beginning of a ClientHello of 512 bytes.
  const std::string half("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11);
  for (const std::string& said :
       {garbage, std::string("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), half,
        std::string()}) {
    EXPECT_LT(HungUpAfter(served_.port(), said), absl::Seconds(5));
  }
  const std::string log = captured.Await(4, kRefused);
  EXPECT_EQ(captured.Count(kRefused), 4u) << log;
  EXPECT_TRUE(absl::StrContains(log, "Handshake timed out")) << log;
  EXPECT_EQ(Ask(PeerRole::kClient).as_client.error_code(),
            grpc::StatusCode::UNIMPLEMENTED)
      << "the others are served";
}

TEST_F(CredentialsTest, NothingOlderThanTls13) {
  TlsStranger stranger = {.port = served_.port(),
                          .shows = members_.Member(PeerRole::kClient)};
  EXPECT_EQ(AgreedVersion(stranger), "TLSv1.3");
  stranger.version_max = TLS1_2_VERSION;
  EXPECT_EQ(AgreedVersion(stranger), "");
}

// A thousand of them are not a thousand lines.
TEST_F(CredentialsTest, AFloodIsCounted) {
  const CapturedLog captured;
  for (int i = 0; i < 200; ++i) HungUpAfter(served_.port(), "x\n\n\n\n\n\n");
  captured.Await(1, kRefused);
  EXPECT_LE(captured.Count(kRefused), 40u);
}

TEST_F(CredentialsTest, WhoServesWithoutASchedulersCertificateIsNotBelieved) {
  for (const PeerTrust& impostor :
       {members_.Member(PeerRole::kWorker), members_.Member(PeerRole::kClient),
        members_.Expired(PeerRole::kScheduler),
        members_.Foreign(PeerRole::kScheduler)}) {
    const Served served(CarelessServer(impostor));
    const auto channel =
        ChannelTo(served.address(),
                  ChannelCredentials(members_.Member(PeerRole::kWorker),
                                     PeerRole::kWorker, served.address())
                      .value());
    EXPECT_FALSE(channel->WaitForConnected(std::chrono::system_clock::now() +
                                           std::chrono::milliseconds(200)));
    EXPECT_TRUE(
        absl::StrContains(WhyNotConnected(channel), "do not know each other"))
        << WhyNotConnected(channel);
  }
}

TEST_F(CredentialsTest, SaysWhyNothingIsConnected) {
  const auto plain =
      ChannelTo(served_.address(), grpc::InsecureChannelCredentials());
  EXPECT_FALSE(plain->WaitForConnected(std::chrono::system_clock::now() +
                                       std::chrono::milliseconds(200)));
  EXPECT_TRUE(absl::StrContains(WhyNotConnected(plain), "hangs up"))
      << WhyNotConnected(plain);
  const auto nobody =
      ChannelTo("127.0.0.1:1", grpc::InsecureChannelCredentials());
  EXPECT_TRUE(absl::StrContains(WhyNotConnected(nobody), "refused"))
      << WhyNotConnected(nobody);
}

}  // namespace
}  // namespace troupe
