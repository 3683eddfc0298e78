#include "scheduler/service/plan_budget.h"

#include <atomic>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace troupe {
namespace {

using ::testing::ElementsAre;

constexpr PlanBudget::Sizes kSizes = {.all = 130, .one = 100, .small = 10};

absl::Status Always() { return absl::OkStatus(); }
absl::Status Never() { return absl::DeadlineExceededError("it took too long"); }

TEST(PlanBudget, SaysWhichPlanWasTooLargeBesideOthers) {
  PlanBudget budget(kSizes);
  PlanBudget::Share large(budget, "large", true);
  PlanBudget::Share other(budget, "other", false);
  ASSERT_TRUE(large.Take(100, Never).ok());
  const absl::Status refused = other.Take(31, Never);
  EXPECT_TRUE(absl::IsDeadlineExceeded(refused)) << refused;
  EXPECT_EQ(refused.message(),
            "the plan of other has 31 instructions and waited for others, of "
            "100 in all, as at most 130 are planned at a time: it took too "
            "long");
  EXPECT_TRUE(other.Take(30, Never).ok());
}

TEST(PlanBudget, AShortPlanNeverWaits) {
  PlanBudget budget(kSizes);
  PlanBudget::Share large(budget, "large", true);
  PlanBudget::Share rest(budget, "rest", true);
  ASSERT_TRUE(large.Take(100, Never).ok());
  ASSERT_TRUE(rest.Take(30, Never).ok());
  PlanBudget::Share small(budget, "small", false);
  EXPECT_TRUE(small.Take(10, Never).ok());
  EXPECT_FALSE(small.Take(11, Never).ok());
}

// Two that could each wait for the other's room: one of them can always go on.
TEST(PlanBudget, WhatBeginsLeavesRoomForSomebodyToGrow) {
  PlanBudget budget(kSizes);
  PlanBudget::Share a(budget, "a", true);
  PlanBudget::Share b(budget, "b", true);
  ASSERT_TRUE(a.Take(60, Never).ok());
  // 130 - 60 - 31 = 39, and `a` may want 40 more.
  EXPECT_FALSE(b.Take(31, Never).ok());
  ASSERT_TRUE(b.Take(30, Never).ok());
  EXPECT_TRUE(a.Take(100, Never).ok());
  EXPECT_FALSE(b.Take(31, Never).ok());
  // Less than before: the rest is for others.
  EXPECT_TRUE(a.Take(20, Never).ok());
  EXPECT_TRUE(b.Take(100, Never).ok());
}

TEST(PlanBudget, RoomComesBackWithWhoeverEnds) {
  PlanBudget budget(kSizes);
  PlanBudget::Share b(budget, "b", true);
  {
    PlanBudget::Share a(budget, "a", true);
    ASSERT_TRUE(a.Take(100, Never).ok());
    EXPECT_FALSE(b.Take(100, Never).ok());
  }
  EXPECT_TRUE(b.Take(100, Never).ok());
}

// A caller that waits asks whether it may go on: so the order in which they
// began to wait is known.
TEST(PlanBudget, JobsComeBeforeQuestionsAndEachKindInOrder) {
  PlanBudget budget(kSizes);
  absl::Mutex mutex;
  std::vector<std::string> order;
  std::vector<std::thread> threads;
  {
    PlanBudget::Share first(budget, "first", false);
    ASSERT_TRUE(first.Take(100, Never).ok());
    for (const std::string name :
         {"question 1", "question 2", "job 1", "job 2"}) {
      // It is asked again and again while others are begun.
      const auto waits = std::make_shared<absl::Notification>();
      threads.emplace_back([&, name, waits] {
        PlanBudget::Share share(budget, name, name[0] == 'j');
        const absl::Status taken = share.Take(90, [&] {
          if (!waits->HasBeenNotified()) waits->Notify();
          return absl::OkStatus();
        });
        EXPECT_TRUE(taken.ok()) << taken;
        absl::MutexLock lock(&mutex);
        order.push_back(name);
      });
      waits->WaitForNotification();
    }
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(order, ElementsAre("job 1", "job 2", "question 1", "question 2"));
}

// A small question that would fit does not pass a job that waits.
TEST(PlanBudget, NobodyIsPassedByWhileItWaits) {
  PlanBudget budget(kSizes);
  PlanBudget::Share first(budget, "first", false);
  ASSERT_TRUE(first.Take(50, Never).ok());
  absl::Notification waits;
  std::thread job([&] {
    PlanBudget::Share share(budget, "job", true);
    EXPECT_TRUE(share
                    .Take(100,
                          [&] {
                            if (!waits.HasBeenNotified()) waits.Notify();
                            return absl::OkStatus();
                          })
                    .ok());
  });
  waits.WaitForNotification();
  PlanBudget::Share question(budget, "question", false);
  EXPECT_FALSE(question.Take(20, Never).ok());
  EXPECT_TRUE(first.Take(70, Never).ok()) << "it has begun";
  ASSERT_TRUE(first.Take(0, Never).ok());
  job.join();
  EXPECT_TRUE(question.Take(20, Never).ok());
}

// However many jobs come.
TEST(PlanBudget, AQuestionIsPassedBySoOftenAndNoMore) {
  PlanBudget budget(kSizes);
  auto has = std::make_unique<PlanBudget::Share>(budget, "first", true);
  ASSERT_TRUE(has->Take(100, Never).ok());
  absl::Notification asks, has_room;
  const auto waits = [](PlanBudget::Share& share, absl::Notification& begins) {
    return share.Take(100, [&] {
      if (!begins.HasBeenNotified()) begins.Notify();
      return absl::OkStatus();
    });
  };
  std::thread question([&] {
    PlanBudget::Share share(budget, "question", false);
    EXPECT_TRUE(waits(share, asks).ok());
    has_room.Notify();
  });
  asks.WaitForNotification();
  for (int job = 0; job <= PlanBudget::kPassesMax; ++job) {
    EXPECT_FALSE(has_room.HasBeenNotified()) << job;
    auto next = std::make_unique<PlanBudget::Share>(budget, "job", true);
    absl::Notification begins;
    std::thread takes([&] { EXPECT_TRUE(waits(*next, begins).ok()); });
    begins.WaitForNotification();
    has = nullptr;
    takes.join();
    has = std::move(next);
  }
  EXPECT_TRUE(has_room.HasBeenNotified());
  question.join();
}

TEST(PlanBudget, AllEndAndNeverMoreIsPlannedThanMayBe) {
  PlanBudget budget(kSizes);
  std::atomic<int64_t> in_use = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 10; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 dice(t);
      for (int i = 0; i < 200; ++i) {
        PlanBudget::Share share(budget, absl::StrCat(t), t % 2 == 0);
        int64_t mine = 0;
        for (int grows = 0; grows < 4; ++grows) {
          const int64_t wanted = 11 + dice() % 90;
          if (wanted < mine) in_use -= mine - wanted;
          ASSERT_TRUE(share.Take(wanted, Always).ok());
          if (wanted > mine) in_use += wanted - mine;
          mine = wanted;
          EXPECT_LE(in_use, kSizes.all);
        }
        in_use -= mine;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace troupe
