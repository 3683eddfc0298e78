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
  const Worker* NewWorker(bool gpu = false) {
    Worker& worker = workers_.emplace_back();
    if (gpu) worker.status.mutable_description()->mutable_gpu();
    worker.status.mutable_description()->set_name(
        absl::StrCat("w", workers_.size()));
    contest_.alive.push_back(&worker);
    return &worker;
  }
  // Of `ranks` ranks, `vacant` of which are vacant.
  WaitingJob& Waits(int number, int ranks, int vacant, bool gpu = false) {
    WaitingJob& job = contest_.waiting.emplace_back();
    job.job = JobId(number);
    job.prediction = &prediction_;
    for (int rank = 0; rank < ranks; ++rank) {
      VacantPlace& place = job.places.emplace_back();
      place.rank = rank;
      if (gpu) place.lost.mutable_gpu();
      if (rank < vacant) job.vacant.push_back(place);
    }
    for (int i = vacant; i < ranks; ++i) job.holds.push_back(NewWorker(gpu));
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

TEST_F(WhoGivesWayTest, AnIdleWorkerThatTheNextJobAvoidsIsNoHelpToIt) {
  Waits(1, 2, 1);
  contest_.idle.push_back(NewWorker());
  contest_.waiting[0].avoids = {contest_.idle[0]->name()};
  contest_.next = NextInQueue{.job = JobId(2), .ranks = 1};
  EXPECT_EQ(Way(), "nobody") << "the idle one is enough";
  contest_.next->avoids = contest_.waiting[0].avoids;
  EXPECT_EQ(Way(), "1 to 2");
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

// Of four living workers it could use two: in the queue it holds nobody back.
TEST_F(WhoGivesWayTest, WorkersOfAnotherKindAreNotLeftForTheJob) {
  Waits(1, 3, 1, /*gpu=*/true);
  for (int i = 0; i < 2; ++i) contest_.idle.push_back(NewWorker());
  contest_.next = {.job = JobId(2), .ranks = 2, .idle_too_small = true};
  EXPECT_EQ(Way(), "1 to 2");
  contest_.next->ranks = 3;
  EXPECT_EQ(Way(), "nobody") << "workers of two kinds do not work together";
}

TEST_F(WhoGivesWayTest, NorAreThoseWithTooLittleMemory) {
  Waits(1, 3, 1);
  for (int rank = 0; rank < 3; ++rank) {
    MemoryItem& item = *prediction_.add_ranks()->add_memory();
    item.set_tier(DEVICE);
    item.set_bytes(500);
  }
  NewWorker();
  contest_.next = {.job = JobId(2), .ranks = 2};
  EXPECT_EQ(Way(), "nobody") << "it has three workers as soon as one is idle";
  TierBudget& budget =
      *workers_.back().status.mutable_description()->add_budgets();
  budget.set_tier(DEVICE);
  budget.set_bytes(100);
  EXPECT_EQ(Way(), "1 to 2");
}

// Its job is being saved, for the first one to take its workers.
TEST_F(WhoGivesWayTest, NobodyForOneThatSoonHasWorkers) {
  Waits(1, 2, 1);
  Waits(2, 2, 1);
  contest_.idle.push_back(NewWorker());
  EXPECT_EQ(Way(), "nobody");
}

}  // namespace
}  // namespace troupe
