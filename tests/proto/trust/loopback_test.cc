#include "proto/trust/loopback.h"

#include "gtest/gtest.h"

namespace troupe {
namespace {

TEST(Loopback, IsWhatOnlyThisMachineReaches) {
  for (const char* yes : {"127.0.0.1:1", "127.3.4.5:80", "localhost:9",
                          "LocalHost", "[::1]:4321", "::1", "127.0.0.1"}) {
    EXPECT_TRUE(IsLoopback(yes)) << yes;
  }
  for (const char* no :
       {"0.0.0.0:1", "10.0.0.1:1", "[::]:1", "::", "*:1", "ada:1", "",
        "127.0.0.1.evil.example:1", "localhost.evil.example:1", "128.0.0.1:1",
        "1270.0.0.1:1", "[::1"}) {
    EXPECT_FALSE(IsLoopback(no)) << no;
  }
}

TEST(Loopback, HostOfAnAddress) {
  EXPECT_EQ(HostOf("ada:1"), "ada");
  EXPECT_EQ(HostOf("ada"), "ada");
  EXPECT_EQ(HostOf("[fe80::1]:1"), "fe80::1");
  EXPECT_EQ(HostOf("fe80::1"), "fe80::1");
}

}  // namespace
}  // namespace troupe
