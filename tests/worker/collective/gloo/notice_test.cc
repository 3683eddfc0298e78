#include "worker/collective/gloo/notice.h"

#include <functional>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "proto/base/steady_time.h"
#include "tests/worker/collective/ranks.h"

namespace troupe {
namespace {

using absl::StatusCode;

// The notices of each rank of a group, all in this thread.
class Group {
 public:
  explicit Group(int ranks) : meshes_(ranks), notices_(ranks) {
    InMemoryStore store;
    OnThreads(ranks, [&](int index) {
      auto mesh = GlooMesh::Connect(TestSeat(ranks, index, &store));
      ASSERT_TRUE(mesh.ok()) << mesh.status();
      meshes_[index] = *std::move(mesh);
      notices_[index] = std::make_unique<Notices>(*meshes_[index]);
    });
  }

  Notices& Of(int rank) { return *notices_[rank]; }
  // Ends the connections of a rank, as the death of its process would.
  void Kill(int rank) {
    notices_[rank] = nullptr;
    meshes_[rank] = nullptr;
  }
  // Polls rank 0 until `done`: what was sent takes a moment to arrive.
  void PollUntil(const std::function<bool()>& done) {
    const absl::Time end = SteadyNow() + absl::Seconds(10);
    do {
      Of(0).Poll();
    } while (!done() && SteadyNow() < end);
    EXPECT_TRUE(done());
  }
  // What rank 0, which waits for `peer`, thinks once it knows enough.
  Verdict Blame(int peer) {
    PollUntil([&] { return Of(0).Blame(peer).has_value(); });
    return Of(0).BlameNow(peer);
  }

 private:
  std::vector<std::unique_ptr<GlooMesh>> meshes_;
  std::vector<std::unique_ptr<Notices>> notices_;
};

TEST(NoticesTest, SilenceBlamesWhomWeWaitFor) {
  Group group(3);
  group.Of(0).Poll();
  EXPECT_FALSE(group.Of(0).Bad());
  EXPECT_FALSE(group.Of(0).Blame(2).has_value());
  const Verdict verdict = group.Of(0).BlameNow(2);
  EXPECT_EQ(verdict.code, StatusCode::kDeadlineExceeded);
  EXPECT_EQ(verdict.peer, 2);
  EXPECT_EQ(verdict.what, "did not come");
}

TEST(NoticesTest, ABrokenConnectionIsADeadPeer) {
  Group group(3);
  group.Kill(2);
  const Verdict verdict = group.Blame(1);
  EXPECT_TRUE(group.Of(0).Bad());
  EXPECT_EQ(verdict.code, StatusCode::kUnavailable);
  EXPECT_EQ(verdict.peer, 2);
}

TEST(NoticesTest, AMessengerThatGoesIsNotToBlame) {
  Group group(3);
  group.Of(1).Say(Notice::kLost, 2, "");
  group.Of(1).Flush(-1);
  group.Kill(1);
  const Verdict verdict = group.Blame(1);
  EXPECT_EQ(verdict.code, StatusCode::kUnavailable);
  EXPECT_EQ(verdict.peer, 2);
}

TEST(NoticesTest, LeavingIsBadOnlyForThoseWhoWait) {
  Group group(3);
  group.Of(2).Say(Notice::kLeft, 2, "");
  const Verdict verdict = group.Blame(2);
  EXPECT_EQ(verdict.code, StatusCode::kUnavailable);
  EXPECT_EQ(verdict.what, "closed its communicator");
  EXPECT_FALSE(group.Of(0).Bad());
  EXPECT_FALSE(group.Of(0).Blame(1).has_value());
}

TEST(NoticesTest, AnAbortSaysWhy) {
  Group group(2);
  group.Of(1).Say(Notice::kAborted, 1, "out of paper");
  group.Of(1).Say(Notice::kLeft, 1, "");  // too late: one notice a rank
  const Verdict verdict = group.Blame(1);
  EXPECT_EQ(verdict.code, StatusCode::kUnavailable);
  EXPECT_EQ(verdict.peer, 1);
  EXPECT_EQ(verdict.what, "aborted: out of paper");
}

TEST(NoticesTest, ALongReasonIsCut) {
  Group group(2);
  group.Of(1).Say(Notice::kAborted, 1, std::string(1000, 'x'));
  const std::string what = group.Blame(1).what;
  EXPECT_GT(what.size(), 100);
  EXPECT_LT(what.size(), 300);
}

TEST(NoticesTest, FollowsWhoWaitsForWhom) {
  Group group(4);
  group.Of(1).Say(Notice::kWaiting, 2, "");
  group.Of(2).Say(Notice::kWaiting, 3, "");
  group.PollUntil([&] { return group.Of(0).BlameNow(1).peer == 3; });
  EXPECT_TRUE(group.Of(0).Bad());
  EXPECT_FALSE(group.Of(0).Blame(1).has_value());  // 3 may still answer
  EXPECT_EQ(group.Of(0).BlameNow(1).what, "did not come");
}

TEST(NoticesTest, ACircleIsNobodysAbsence) {
  Group group(3);
  group.Of(1).Say(Notice::kWaiting, 0, "");
  const Verdict verdict = group.Blame(1);
  EXPECT_EQ(verdict.code, StatusCode::kDeadlineExceeded);
  EXPECT_EQ(verdict.peer, 1);
  EXPECT_NE(verdict.what.find("gave up waiting for this rank"),
            std::string::npos);
}

TEST(NoticesTest, ACircleOfOthersEnds) {
  Group group(3);
  group.Of(1).Say(Notice::kWaiting, 2, "");
  group.Of(2).Say(Notice::kWaiting, 1, "");
  const Verdict verdict = group.Blame(1);
  EXPECT_EQ(verdict.code, StatusCode::kDeadlineExceeded);
  EXPECT_NE(verdict.what.find("another operation"), std::string::npos);
}

}  // namespace
}  // namespace troupe
