#include "worker/collective/shared_memory/members.h"

#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <vector>

#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "worker/collective/shared_memory/segment_map.h"

namespace troupe {
namespace {

using absl::StatusCode;

// Three members; none of them computes anything.
class MembersTest : public testing::Test {
 protected:
  MembersTest() : memory_(SegmentMap::Bytes(3) / 64), map_(Data(), 3) {
    map_.Initialize();
    for (int rank = 0; rank < 3; ++rank) map_.state(rank).process = getpid();
  }
  void Gather() {
    for (int rank = 0; rank < 3; ++rank) {
      members_.push_back(std::make_unique<Members>(map_, rank));
    }
  }
  char* Data() { return reinterpret_cast<char*>(memory_.data()); }
  // As if the rank slept for another, until `counter` is not 0.
  void WaitsFor(int rank, int other, SharedCounter& counter) {
    map_.state(rank).waits_for = other;
    map_.state(rank).waits_at = map_.PlaceOf(counter);
    map_.state(rank).waits_seen = 0;
  }

  // As rank 0, which waits still.
  Verdict Look(std::vector<int> missing, absl::Time deadline) {
    return members_[0]->Look(missing, deadline, [] { return false; });
  }

  struct alignas(64) Line {
    char bytes[64];
  };
  std::vector<Line> memory_;
  SegmentMap map_;
  std::vector<std::unique_ptr<Members>> members_;
};

TEST_F(MembersTest, WaitingGoesOnWhileAllIsWell) {
  Gather();
  EXPECT_TRUE(Look({1, 2}, absl::InfiniteFuture()).ok());
  EXPECT_TRUE(members_[0]->Broken().ok());
}

TEST_F(MembersTest, AtTheDeadlineTheOneWhoWaitsForNobodyIsMissing) {
  Gather();
  WaitsFor(1, 2, map_.gate().turn);
  const Verdict verdict = Look({1}, absl::InfinitePast());
  EXPECT_EQ(verdict.code, StatusCode::kDeadlineExceeded);
  EXPECT_EQ(verdict.peer, 2);
  // The others are told, also the one that is missing.
  EXPECT_EQ(members_[1]->Broken().peer, 2);
  EXPECT_EQ(members_[2]->Broken().peer, 0);
  EXPECT_NE(members_[2]->Broken().what.find("gave up"), std::string::npos);
}

TEST_F(MembersTest, AWaitThatIsOverIsNone) {
  Gather();
  WaitsFor(1, 2, map_.gate().turn);
  map_.gate().turn.Set(1);  // but rank 1 does not go on: stopped
  EXPECT_EQ(Look({1}, absl::InfinitePast()).peer, 1);
}

TEST_F(MembersTest, WhoDidItsPartAndLeftIsNotToBlame) {
  Gather();
  members_[2] = nullptr;
  for (const absl::Time deadline :
       {absl::InfiniteFuture(), absl::InfinitePast()}) {
    EXPECT_TRUE(members_[0]->Look({2}, deadline, [] { return true; }).ok());
  }
  EXPECT_TRUE(members_[1]->Broken().ok());
}

TEST_F(MembersTest, WhoLeftIsMissedOnlyByThoseWhoWaitForIt) {
  Gather();
  members_[2] = nullptr;
  EXPECT_TRUE(Look({1}, absl::InfiniteFuture()).ok());
  const Verdict verdict = Look({1, 2}, absl::InfiniteFuture());
  EXPECT_EQ(verdict.code, StatusCode::kUnavailable);
  EXPECT_EQ(verdict.peer, 2);
  EXPECT_EQ(verdict.what, "closed its communicator");
  EXPECT_EQ(members_[1]->Broken().peer, 2);
}

TEST_F(MembersTest, AbortIsToldToAll) {
  Gather();
  members_[1]->Abort(absl::InternalError("out of paper"));
  EXPECT_EQ(members_[1]->Broken().code, StatusCode::kCancelled);
  for (const int rank : {0, 2}) {
    const Verdict verdict = members_[rank]->Broken();
    EXPECT_EQ(verdict.code, StatusCode::kUnavailable);
    EXPECT_EQ(verdict.peer, 1);
    EXPECT_EQ(verdict.what, "aborted: out of paper");
  }
}

TEST_F(MembersTest, AProcessThatEndsWithoutAWordIsDead) {
  int wires[2];
  ASSERT_EQ(pipe(wires), 0);
  const pid_t child = fork();
  if (child == 0) {
    char byte;
    close(wires[1]);
    _exit(static_cast<int>(read(wires[0], &byte, 1)));
  }
  map_.state(2).process = child;
  Gather();
  EXPECT_TRUE(Look({1}, absl::InfiniteFuture()).ok());
  close(wires[0]);
  close(wires[1]);  // the child ends
  siginfo_t info;
  waitid(P_PID, child, &info, WEXITED | WNOWAIT);
  const Verdict verdict = Look({1}, absl::InfiniteFuture());
  EXPECT_EQ(verdict.peer, 2);
  EXPECT_EQ(verdict.what, "died");
  EXPECT_EQ(members_[1]->Broken().what, "died");
  waitpid(child, nullptr, 0);
}

}  // namespace
}  // namespace troupe
