#include "proto/trust/refused_peers.h"

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/proto/trust/captured_log.h"

namespace troupe {
namespace {

// A flood at one door hides nobody at another.
TEST(RefusedPeers, EachDoorHasLinesOfItsOwn) {
  const CapturedLog log;
  for (int i = 0; i < 1000; ++i) {
    TellOfRefusedPeer(Door::kHttp, absl::StrCat("flood ", i));
  }
  TellOfRefusedPeer(Door::kGrpc, "a stranger\nwith a line of its own");
  log.Await(1, "a stranger");
  EXPECT_EQ(log.Count("refused a peer: flood"), 20u);
  EXPECT_EQ(log.Count("refused a peer: a stranger"), 1u);
  EXPECT_EQ(log.Count("with a line of its own"), 1u);
}

}  // namespace
}  // namespace troupe
