#include "scheduler/cluster/who_waits.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "scheduler/passes/lanes.h"
#include "tests/proto/plan/made_roles.h"
#include "tests/scheduler/cluster/made_up_progress.h"

namespace troupe {
namespace {

const absl::Time kNow = absl::FromUnixSeconds(1000);
constexpr int64_t kStep = 12;

// Ranks that were all heard a second ago, and are in step 12.
class Ranks {
 public:
  explicit Ranks(int count) : plan_(PlanOfPlaces(count)), reports_(count) {
    plan_.clear_groups();
    for (int r = 0; r < count; ++r) {
      reports_[r].worker_name = absl::StrCat("w", r);
      reports_[r].heard = kNow - absl::Seconds(1);
    }
  }
  Ranks& Group(const std::vector<int>& ranks) {
    AddGroupOf(ranks, "", plan_);
    return *this;
  }
  Ranks& Is(int rank, const RankProgress& progress) {
    reports_[rank].progress = progress;
    return *this;
  }
  Ranks& Silent(int rank, int seconds) {
    reports_[rank].heard = kNow - absl::Seconds(seconds);
    return *this;
  }
  Waits Ask() const {
    return WhoWaits(plan_, reports_,
                    {.now = kNow, .silent_after = absl::Seconds(2)});
  }
  std::string Text() const { return Ask().Text(); }

 private:
  Plan plan_;
  std::vector<RankReport> reports_;
};

// A rank that computes, and has all its transfers and collectives to come.
RankProgress Computes(int unit, double seconds) {
  const Instruction forward = Forward(unit, 3);
  return Doing(kStep)
      .Runs(forward, seconds)
      .Waits(Send(unit, 3, 0), forward)
      .Waits(Reduce(2, 0), forward);
}
// One that has nothing to compute until the transfer comes.
RankProgress AwaitsFrom(int peer, int unit, double seconds) {
  const Instruction forward = Forward(unit + 1, 3);
  return Doing(kStep)
      .Waits(forward, Recv(unit, 3, peer))
      .Runs(Recv(unit, 3, peer), seconds)
      .Waits(Reduce(2, 0), forward);
}
RankProgress IsIn(const Instruction& reduce, double seconds) {
  return Doing(kStep)
      .Waits(On(LaneNamed("COMPUTE"), Instruction::STEP, reduce.unit()), reduce)
      .Runs(reduce, seconds);
}

TEST(WhoWaits, ATransferWaitsForItsSender) {
  EXPECT_EQ(Ranks(6).Is(5, AwaitsFrom(4, 7, 30)).Is(4, Computes(6, 30)).Text(),
            "rank 5 waits for RECV u7 m3 from rank 4; rank 4 has been in "
            "FORWARD u6 m3 for 31 s (w4)");
  const RankProgress sends =
      Doing(kStep).Waits(Forward(7, 3), Send(7, 3, 1)).Runs(Send(7, 3, 1), 20);
  EXPECT_EQ(Ranks(2).Is(0, sends).Is(1, Computes(8, 20)).Text(),
            "rank 0 waits for SEND u7 m3 to rank 1; rank 1 has been in "
            "FORWARD u8 m3 for 21 s (w1)");
}

TEST(WhoWaits, FollowsAPipelineToTheStageThatComputes) {
  for (int culprit = 0; culprit < 4; ++culprit) {
    Ranks ranks(4);
    ranks.Is(culprit, Computes(2 * culprit, 30));
    std::string chain;
    // All behind it have waited for as long; those before it compute on.
    for (int r = 3; r > culprit; --r) {
      ranks.Is(r, AwaitsFrom(r - 1, 2 * r - 1, 30 + r));
      absl::StrAppend(&chain, "rank ", r, " waits for RECV u", 2 * r - 1,
                      " m3 from rank ", r - 1, "; ");
    }
    for (int r = 0; r < culprit; ++r) ranks.Is(r, Computes(2 * r, 0));
    const Waits waits = ranks.Ask();
    if (culprit == 3) {
      EXPECT_TRUE(waits.waiters.empty()) << "all compute";
      EXPECT_EQ(waits.ends.front(),
                "rank 3 has been in FORWARD u6 m3 for 31 s (w3)");
      continue;
    }
    EXPECT_EQ(waits.Text(),
              absl::StrCat(chain, "rank ", culprit, " has been in FORWARD u",
                           2 * culprit, " m3 for 31 s (w", culprit, ")"));
    EXPECT_EQ(waits.culprits, std::vector<Culprit>{{.rank = culprit}});
  }
}

TEST(WhoWaits, BeginsWithTheOneThatHasWaitedLongest) {
  Ranks ranks(4);
  ranks.Is(0, AwaitsFrom(1, 0, 10)).Is(1, AwaitsFrom(2, 2, 20));
  ranks.Is(2, Computes(4, 40)).Is(3, AwaitsFrom(2, 5, 30));
  EXPECT_EQ(
      ranks.Ask().waiters,
      std::vector<std::string>{"rank 3 waits for RECV u5 m3 from rank 2"});
}

TEST(WhoWaits, ALongChainIsShortened) {
  Ranks ranks(100);
  ranks.Is(0, Computes(0, 30));
  for (int r = 1; r < 100; ++r) ranks.Is(r, AwaitsFrom(r - 1, r, 30 + r));
  const Waits waits = ranks.Ask();
  ASSERT_EQ(waits.waiters.size(), 5u);
  EXPECT_EQ(waits.waiters.front(),
            "rank 99 waits for RECV u99 m3 from rank 98");
  EXPECT_EQ(waits.waiters[3], "... (95 more)");
  EXPECT_EQ(waits.waiters.back(), "rank 1 waits for RECV u1 m3 from rank 0");
}

// Of four ranks each subset that has not come.
TEST(WhoWaits, ACollectiveWaitsForAllThatHaveNotCome) {
  const Instruction reduce = Reduce(2, 0);
  for (int late = 1; late < 15; ++late) {
    Ranks ranks(4);
    ranks.Group({0, 1, 2, 3});
    std::vector<Culprit> culprits;
    for (int r = 0; r < 4; ++r) {
      const bool is_late = (late >> r & 1) != 0;
      ranks.Is(r, is_late ? Computes(r, 30) : IsIn(reduce, 20));
      if (is_late) culprits.push_back({.rank = r});
    }
    const Waits waits = ranks.Ask();
    EXPECT_EQ(waits.culprits, culprits) << late;
    EXPECT_EQ(waits.ends.size(), culprits.size()) << late;
    ASSERT_EQ(waits.waiters.size(), 1u) << late;
  }
  Ranks ranks(4);
  ranks.Group({0, 1, 2, 3}).Is(0, IsIn(reduce, 20)).Is(2, Computes(1, 20));
  ranks.Is(1, Computes(0, 20)).Is(3, IsIn(reduce, 20));
  EXPECT_EQ(ranks.Text(),
            "rank 0 waits in REDUCE_GRADS u2-3 for ranks 1, 2; rank 1 has been "
            "in FORWARD u0 m3 for 21 s (w1); rank 2 has been in FORWARD u1 m3 "
            "for 21 s (w2)");
}

TEST(WhoWaits, NobodyOutsideTheGroupIsWaitedFor) {
  Ranks ranks(4);
  ranks.Group({0, 1}).Is(0, Computes(0, 50)).Is(1, Computes(0, 50));
  ranks.Group({2, 3}).Is(2, IsIn(Reduce(2, 1), 20)).Is(3, Computes(1, 20));
  EXPECT_EQ(ranks.Text(),
            "rank 2 waits in REDUCE_GRADS u2-3 for rank 3; rank 3 has been in "
            "FORWARD u1 m3 for 21 s (w3)");
}

TEST(WhoWaits, GoesFromACollectiveIntoAPipeline) {
  Ranks ranks(4);
  ranks.Group({0, 2}).Is(0, Computes(0, 1)).Is(2, Computes(0, 30));
  ranks.Group({1, 3}).Is(1, IsIn(Reduce(2, 1), 40)).Is(3, AwaitsFrom(2, 1, 30));
  EXPECT_EQ(ranks.Text(),
            "rank 1 waits in REDUCE_GRADS u2-3 for rank 3; rank 3 waits for "
            "RECV u1 m3 from rank 2; rank 2 has been in FORWARD u0 m3 for 31 s "
            "(w2)");
}

TEST(WhoWaits, ASilentRankIsToBlameWhereverItWas) {
  const Instruction reduce = Reduce(2, 0);
  for (const RankProgress& last :
       {Computes(1, 0.1), IsIn(reduce, 0.1), AwaitsFrom(0, 1, 0.1)}) {
    const Waits waits = Ranks(2)
                            .Group({0, 1})
                            .Is(0, IsIn(reduce, 5))
                            .Is(1, last)
                            .Silent(1, 6)
                            .Ask();
    const std::vector<Culprit> culprits = {{.rank = 1, .silent = true}};
    EXPECT_EQ(waits.culprits, culprits);
    EXPECT_EQ(waits.waiters,
              std::vector<std::string>{
                  "rank 0 waits in REDUCE_GRADS u2-3 for rank 1"});
    EXPECT_TRUE(absl::StartsWith(waits.ends[0],
                                 "rank 1 has not been heard for 6.0 s, and "
                                 "was in "))
        << waits.ends[0];
  }
}

TEST(WhoWaits, TheSilentAreNamedBeforeThoseThatCompute) {
  Ranks ranks(8);
  ranks.Group({0, 1, 2, 3, 4, 5, 6, 7}).Is(0, IsIn(Reduce(2, 0), 60));
  for (int r = 1; r < 8; ++r) ranks.Is(r, Computes(1, 40 + r));
  ranks.Silent(6, 9).Silent(5, 8).Is(5, RankProgress());
  const Waits waits = ranks.Ask();
  EXPECT_EQ(waits.waiters[0],
            "rank 0 waits in REDUCE_GRADS u2-3 for rank 6 and 6 more");
  ASSERT_EQ(waits.ends.size(), 3u);
  EXPECT_EQ(waits.ends[0],
            "rank 6 has not been heard for 9.0 s, and was in FORWARD u1 m3 "
            "(w6)");
  EXPECT_EQ(waits.ends[1], "rank 5 has not been heard for 8.0 s (w5)");
  EXPECT_EQ(waits.ends[2],
            "rank 7 has been in FORWARD u1 m3 for 48 s (w7), and 4 more");
  EXPECT_EQ(waits.culprits.size(), 7u);
}

TEST(WhoWaits, ARankThatHasNotBegunTheStepIsWaitedFor) {
  EXPECT_EQ(
      Ranks(2)
          .Group({0, 1})
          .Is(0, IsIn(Reduce(2, 0), 8))
          .Is(1, Doing(kStep - 1, Program::CHECKPOINT)
                     .Runs(On(LaneNamed("IO"), Instruction::SNAPSHOT, 3), 9))
          .Text(),
      "rank 0 waits in REDUCE_GRADS u2-3 for rank 1; rank 1 has been in "
      "SNAPSHOT u3 of CHECKPOINT for 10 s (w1)");
  EXPECT_EQ(
      Ranks(2)
          .Group({0, 1})
          .Is(0, IsIn(Reduce(2, 0), 8))
          .Is(1, Doing(kStep - 1, Program::KIND_UNSPECIFIED).Since(8.5))
          .Text(),
      "rank 0 waits in REDUCE_GRADS u2-3 for rank 1; rank 1 has been between "
      "programs for 9.5 s, after step 11 (w1)");
}

TEST(WhoWaits, WhereAllHaveComeTheNetworkIsSlow) {
  const Waits waits = Ranks(2)
                          .Group({0, 1})
                          .Is(0, IsIn(Reduce(2, 0), 8))
                          .Is(1, IsIn(Reduce(2, 0), 9))
                          .Ask();
  EXPECT_TRUE(waits.waiters.empty());
  EXPECT_EQ(waits.Text(),
            "rank 1 has been in REDUCE_GRADS u2-3 for 10 s, and so have all "
            "that it needs (w1); rank 0 has been in REDUCE_GRADS u2-3 for "
            "9.0 s, and so have all that it needs (w0)");
  const RankProgress sends = Doing(kStep).Runs(Send(1, 3, 1), 8);
  EXPECT_TRUE(
      Ranks(2).Is(0, sends).Is(1, AwaitsFrom(0, 1, 9)).Ask().waiters.empty());
}

TEST(WhoWaits, ACircleIsSaidToBeOne) {
  Ranks ranks(3);
  ranks.Is(0, AwaitsFrom(1, 0, 9)).Is(1, AwaitsFrom(2, 2, 8));
  const Waits waits = ranks.Is(2, AwaitsFrom(1, 4, 8)).Ask();
  EXPECT_EQ(waits.Text(),
            "rank 1 waits for RECV u2 m3 from rank 2; rank 2 waits for RECV u4 "
            "m3 from rank 1; they wait for one another");
  const std::vector<Culprit> both = {{.rank = 1}, {.rank = 2}};
  EXPECT_EQ(waits.culprits, both);
}

TEST(WhoWaits, NothingKnownIsNothingSaid) {
  EXPECT_EQ(Ranks(0).Text(), "");
  EXPECT_EQ(Ranks(2).Text(), "") << "no program runs";
}

TEST(WhoWaits, NonsenseOfAWorkerIsNobodysWait) {
  for (const int nobody : {-1, 0, 7, 1 << 30}) {
    EXPECT_TRUE(Ranks(1).Is(0, AwaitsFrom(nobody, 1, 9)).Ask().waiters.empty());
    if (nobody == 0) continue;
    EXPECT_TRUE(Ranks(1)
                    .Group({0})
                    .Is(0, IsIn(Reduce(1, nobody), 9))
                    .Ask()
                    .waiters.empty());
  }
}

// Only the chain is told, of however many ranks.
TEST(WhoWaits, AThousandRanksAreToldInALine) {
  Ranks ranks(1000);
  std::vector<int> all(1000);
  for (int r = 0; r < 1000; ++r) {
    all[r] = r;
    ranks.Is(r, r == 731 ? Computes(1, 30) : IsIn(Reduce(2, 0), 29));
  }
  ranks.Group(all);
  EXPECT_EQ(ranks.Text(),
            "rank 0 waits in REDUCE_GRADS u2-3 for rank 731; rank 731 has been "
            "in FORWARD u1 m3 for 31 s (w731)");
  // All but one are late.
  for (int r = 1; r < 1000; ++r) ranks.Is(r, Computes(1, 30));
  EXPECT_EQ(ranks.Ask().culprits.size(), 999u);
  EXPECT_LT(ranks.Text().size(), 400u);
}

}  // namespace
}  // namespace troupe
