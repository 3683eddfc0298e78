#include "worker/doctor/network.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gtest/gtest.h"

namespace troupe {
namespace {

TEST(Ports, AnyCanBeListenedOn) {
  const Finding finding = CheckPorts(0);
  EXPECT_EQ(finding.state, FindingState::kOk) << finding.text;
}

TEST(Ports, OneThatIsTakenFails) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t bytes = sizeof(address);
  auto* const place = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(bind(listener, place, bytes), 0);
  ASSERT_EQ(listen(listener, 1), 0);
  ASSERT_EQ(getsockname(listener, place, &bytes), 0);
  const Finding finding = CheckPorts(ntohs(address.sin_port));
  EXPECT_EQ(finding.state, FindingState::kFail);
  EXPECT_NE(finding.text.find("Address already in use"), std::string::npos)
      << finding.text;
  EXPECT_FALSE(finding.advice.empty());
  close(listener);
}

TEST(HostName, ShouldBeReachableFromElsewhere) {
  EXPECT_EQ(JudgeHostName({.name = "box", .addresses = {"10.0.0.2"}}).text,
            "box is 10.0.0.2");
  EXPECT_EQ(
      JudgeHostName({.name = "box", .addresses = {"127.0.1.1", "10.0.0.2"}})
          .state,
      FindingState::kOk);
  EXPECT_EQ(
      JudgeHostName({.name = "box", .addresses = {"127.0.1.1", "::1"}}).state,
      FindingState::kWarn);
  const Finding unknown = JudgeHostName({.name = "box"});
  EXPECT_EQ(unknown.state, FindingState::kWarn);
  EXPECT_EQ(unknown.text, "box does not resolve");
}

TEST(Loopback, CarriesBytesThereAndBack) {
  const auto trip = LoopbackRoundTrip();
  ASSERT_TRUE(trip.ok()) << trip.status();
  EXPECT_GT(*trip, absl::ZeroDuration());
  EXPECT_EQ(CheckLoopback().state, FindingState::kOk);
}

}  // namespace
}  // namespace troupe
