#include "scheduler/cluster/policy/who_gives_way.h"

#include <deque>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace troupe {
namespace {

// Jobs in the order of their numbers, and workers of one kind.
class WhoGivesWayTest : public testing::Test {
 protected:
  const Worker* NewWorker() {
    Worker& worker = workers_.emplace_back();
    worker.status.mutable_description()->set_name(
        absl::StrCat("w", workers_.size()));
    ++contest_.alive;
    return &worker;
  }
  // Of so many ranks, as many of which are vacant.
  WaitingJob& Waits(int number, int ranks, int vacant) {
    WaitingJob& job = contest_.waiting.emplace_back();
    job.job = JobId(number);
    job.ranks = ranks;
    job.prediction = &prediction_;
    for (int rank = 0; rank < vacant; ++rank) {
      job.vacant.push_back({.rank = rank, .lost = {}});
    }
    for (int i = vacant; i < ranks; ++i) job.holds.push_back(NewWorker());
    job.has_waited = job.loses_nothing = true;
    return job;
  }
  // "2 to 1", or "nobody".
  std::string Way() const {
    const absl::optional<GivesWay> way = WhoGivesWay(contest_);
    if (!way.has_value()) return "nobody";
    return absl::StrCat(way->job.value(), " to ", way->to.value());
  }

  std::deque<Worker> workers_;
  Prediction prediction_;
  Contest contest_;
};

TEST_F(WhoGivesWayTest, TheYoungerOfTwoThatNeedEachOthersWorkers) {
  Waits(1, 2, 1);
  Waits(2, 2, 1);
  EXPECT_EQ(Way(), "2 to 1");
}

TEST_F(WhoGivesWayTest, TheOlderOneWhereTheYoungerWouldLoseItsState) {
  Waits(1, 2, 1);
  Waits(2, 2, 1).loses_nothing = false;
  EXPECT_EQ(Way(), "1 to 2");
}

TEST_F(WhoGivesWayTest, NobodyWhereBothWouldLoseTheirs) {
  Waits(1, 2, 1).loses_nothing = false;
  Waits(2, 2, 1).loses_nothing = false;
  EXPECT_EQ(Way(), "nobody");
}

TEST_F(WhoGivesWayTest, NobodyBeforeBothHaveWaited) {
  Waits(1, 2, 1);
  Waits(2, 2, 1).has_waited = false;
  EXPECT_EQ(Way(), "nobody");
}

TEST_F(WhoGivesWayTest, NobodyForNothing) {
  Waits(1, 4, 3);
  Waits(2, 2, 1);
  Waits(3, 4, 3);
  EXPECT_EQ(Way(), "3 to 2") << "for the first all of them are too few";
}

TEST_F(WhoGivesWayTest, TheYoungestFirstOfSeveralThatAreNeeded) {
  Waits(1, 3, 2);
  Waits(2, 2, 1);
  Waits(3, 2, 1);
  EXPECT_EQ(Way(), "3 to 1");
  contest_.idle.push_back(contest_.waiting[2].holds[0]);
  contest_.waiting.pop_back();  // it is queued
  EXPECT_EQ(Way(), "2 to 1");
}

TEST_F(WhoGivesWayTest, AWorkerThatDoesNotFitHelpsNobody) {
  Waits(1, 2, 1).vacant[0].lost.mutable_gpu()->set_name("gpu");
  Waits(2, 2, 1);
  EXPECT_EQ(Way(), "1 to 2") << "the younger one's has no GPU";
}

TEST_F(WhoGivesWayTest, AWorkerThatTheJobAvoidsHelpsItNotEither) {
  Waits(1, 2, 1);
  Waits(2, 2, 1);
  contest_.waiting[0].avoids.insert(contest_.waiting[1].holds[0]->name());
  EXPECT_EQ(Way(), "1 to 2");
}

TEST_F(WhoGivesWayTest, AJobForWhichTooFewAreLeftGivesWayToTheQueue) {
  Waits(1, 4, 2);
  contest_.next = {.job = JobId(2), .ranks = 2};
  EXPECT_EQ(Way(), "1 to 2");
  contest_.next->ranks = 3;
  EXPECT_EQ(Way(), "nobody") << "it has two";
}

TEST_F(WhoGivesWayTest, NotToAJobThatItWouldHoldBackInTheQueue) {
  Waits(1, 4, 2);
  NewWorker();  // two that are busy elsewhere
  NewWorker();
  contest_.next = {.job = JobId(2), .ranks = 2};
  EXPECT_EQ(Way(), "nobody");
  contest_.next->job = JobId(0);
  EXPECT_EQ(Way(), "1 to 0");
}

}  // namespace
}  // namespace troupe
