// Strangers at the door of real daemons: taken ports, workers of another
// version, peers that go away in the middle of things.
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clients/cpp/find_scheduler.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/base/check.h"
#include "proto/protocol_version.h"
#include "proto/trust/cluster_trust.h"
#include "tests/cluster/cluster_test_base.h"
#include "tests/cluster/impostor.h"

namespace troupe {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// A port of loopback that somebody else has.
class TakenPort {
 public:
  TakenPort() : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    CHECK(bind(fd_, any, sizeof(address)) == 0);
    CHECK(listen(fd_, 1) == 0);
    socklen_t size = sizeof(address);
    CHECK(getsockname(fd_, any, &size) == 0);
    address_ = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  }
  ~TakenPort() { close(fd_); }

  const std::string& address() const { return address_; }

 private:
  int fd_;
  std::string address_;
};

class BadPeerTest : public ClusterTestBase {
 protected:
  std::string Scheduler() const {
    const auto endpoints = ReadEndpoints(dir());
    EXPECT_TRUE(endpoints.ok()) << endpoints.status().ToString();
    return endpoints.ok() ? endpoints->grpc : "";
  }

  // Strangers that have got hold of a worker's certificate.
  PeerTrust Trust() const {
    return {.certificates = MemberDirectory(dir(), PeerRole::kWorker)};
  }

  // The one real worker is idle, and a job runs on it.
  void ExpectOneWorkerFree() {
    EXPECT_EQ(Watch(Submit({"parallelism.data=1"})).code, 0);
    const json workers = json::parse(Troupe({"workers", "--json"}).out);
    for (const json& worker : workers["workers"]) {
      const bool real = worker["description"]["name"] == "worker-0";
      EXPECT_EQ(worker["state"], real ? "IDLE" : "LOST") << worker;
    }
  }
};

TEST_F(BadPeerTest, APortInUseIsNamed) {
  const TakenPort taken;
  for (const char* flag : {"--listen", "--http"}) {
    const Outcome scheduler =
        RunProgram({kScheduler, "--state", dir() + "/state", "--insecure", flag,
                    taken.address()});
    EXPECT_EQ(scheduler.code, 1) << flag;
    EXPECT_THAT(scheduler.err, HasSubstr(taken.address())) << flag;
  }
  Up(1);
  ExpectOneWorkerFree();
}

TEST_F(BadPeerTest, AWorkerOfAnotherVersionIsRefused) {
  Up(1);
  const absl::Status refused =
      Impostor(Scheduler(), 99, Trust()).AwaitRegistration();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.message()),
              AllOf(HasSubstr("version 99"), HasSubstr("one build on both")));
  EXPECT_THAT(Troupe({"workers"}).out, Not(HasSubstr("impostor")));
  ExpectOneWorkerFree();
}

TEST_F(BadPeerTest, AWorkerSaysThatItsSchedulerIsOfAnotherVersion) {
  const NewerScheduler scheduler;
  const Outcome worker =
      RunProgram({kWorker, "--insecure", "--scheduler", scheduler.address(),
                  "--threads", kThreads});
  EXPECT_EQ(worker.code, 1);
  EXPECT_THAT(worker.err,
              AllOf(HasSubstr("version 99"), HasSubstr("from one build")));
}

TEST_F(BadPeerTest, APeerThatVanishesBeforeTheRendezvousFreesTheOthers) {
  Up(1);
  Impostor impostor(Scheduler(), kProtocolVersion, Trust());
  const absl::Status registered = impostor.AwaitRegistration();
  ASSERT_TRUE(registered.ok()) << registered.ToString();
  const int job = Submit();
  EXPECT_EQ(impostor.AwaitJob(), job);
  impostor.Vanish();
  const Outcome watched = Watch(job);
  EXPECT_EQ(watched.code, 1);
  EXPECT_THAT(watched.err, HasSubstr("impostor"));
  ExpectOneWorkerFree();
}

TEST_F(BadPeerTest, NonsenseFromAPeerHarmsNobodyElse) {
  Up(1);
  Impostor impostor(Scheduler(), kProtocolVersion, Trust());
  ASSERT_TRUE(impostor.AwaitRegistration().ok());
  impostor.TalkNonsense();
  impostor.Vanish();
  ExpectOneWorkerFree();
}

}  // namespace
}  // namespace troupe
