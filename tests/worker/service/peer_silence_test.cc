#include "worker/service/peer_silence.h"

#include <arpa/inet.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "proto/base/check.h"
#include "tests/worker/service/cut_off.h"

namespace troupe {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

// A connection to a port of this process that nobody reads.
class Connection {
 public:
  Connection() {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    socklen_t bytes = sizeof(address);
    listening_ = socket(AF_INET, SOCK_STREAM, 0);
    CHECK_EQ(bind(listening_, any, bytes), 0);
    CHECK_EQ(listen(listening_, 1), 0);
    CHECK_EQ(getsockname(listening_, any, &bytes), 0);
    port_ = ntohs(address.sin_port);
    near_ = socket(AF_INET, SOCK_STREAM, 0);
    CHECK_EQ(connect(near_, any, bytes), 0);
    far_ = accept(listening_, nullptr, nullptr);
    CHECK_GE(far_, 0);
  }
  ~Connection() {
    for (const int fd : {near_, far_, listening_}) close(fd);
  }

  int port() const { return port_; }
  std::string peer() const { return absl::StrCat("ipv4:127.0.0.1:", port_); }
  void Send() const { CHECK_EQ(write(near_, "word", 4), 4); }
  void AwaitAcknowledged() const {
    tcp_info info = {};
    do {
      std::this_thread::yield();
      socklen_t bytes = sizeof(info);
      CHECK_EQ(getsockopt(near_, IPPROTO_TCP, TCP_INFO, &info, &bytes), 0);
    } while (info.tcpi_unacked > 0);
  }

 private:
  int listening_, near_, far_, port_ = 0;
};

// As of a process that is paused.
TEST(PeerSilence, AMachineWhoseProcessReadsNothingAnswers) {
  const Connection connection;
  PeerSilence silence(connection.peer());
  for (int64_t second = 0; second < 20; ++second) {
    connection.Send();
    connection.AwaitAcknowledged();
    EXPECT_EQ(silence.Look(second * kSecond), absl::ZeroDuration());
  }
}

TEST(PeerSilence, WhoIsToldNothingIsNotSilent) {
  const Connection connection;
  PeerSilence silence(connection.peer());
  EXPECT_EQ(silence.Look(0), absl::ZeroDuration());
  EXPECT_EQ(CutOff(connection.port()), 1);
  EXPECT_EQ(silence.Look(100 * kSecond), absl::ZeroDuration());
}

TEST(PeerSilence, AMachineThatIsGoneIsSilentSinceALook) {
  const Connection connection;
  PeerSilence silence(connection.peer());
  connection.Send();
  connection.AwaitAcknowledged();
  EXPECT_EQ(silence.Look(0), absl::ZeroDuration());
  EXPECT_EQ(CutOff(connection.port()), 1);
  connection.Send();
  EXPECT_EQ(silence.Look(2 * kSecond), absl::ZeroDuration());
  EXPECT_EQ(silence.Look(7 * kSecond), absl::Seconds(5));
  EXPECT_EQ(silence.Look(9 * kSecond), absl::Seconds(7));
}

TEST(PeerSilence, OthersAreNotAsked) {
  const Connection connection;
  const Connection gone;
  EXPECT_EQ(CutOff(gone.port()), 1);
  gone.Send();
  PeerSilence silence(connection.peer());
  EXPECT_EQ(silence.Look(0), absl::ZeroDuration());
  EXPECT_EQ(silence.Look(100 * kSecond), absl::ZeroDuration());
}

}  // namespace
}  // namespace troupe
