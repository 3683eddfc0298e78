#include "worker/actor/actor.h"

#include <pthread.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"

namespace troupe {
namespace {

TEST(ActorTest, HandlesMessagesInOrderOnItsOwnThread) {
  std::vector<int> seen;  // no lock: it is the actor's
  std::thread::id thread;
  {
    Actor<int> actor({.name = "order", .capacity = 3}, [&](int message) {
      seen.push_back(message);
      thread = std::this_thread::get_id();
    });
    for (int i = 0; i < 100; ++i) actor.Send(i);
  }
  ASSERT_EQ(seen.size(), 100);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(seen[i], i);
  EXPECT_NE(thread, std::this_thread::get_id());
}

TEST(ActorTest, BeginsAndEndsOnItsOwnThreadWithWhatItWasGiven) {
  int handled = 0, handled_at_start = -1, handled_at_end = -1;
  std::thread::id thread;
  {
    Actor<int> actor({.name = "end",
                      .at_start =
                          [&] {
                            handled_at_start = handled;
                            thread = std::this_thread::get_id();
                          },
                      .at_end =
                          [&] {
                            handled_at_end = handled;
                            EXPECT_EQ(thread, std::this_thread::get_id());
                          }},
                     [&](int) { ++handled; });
    actor.Send(1);
    actor.Send(2);
  }
  EXPECT_EQ(handled_at_start, 0);
  EXPECT_EQ(handled_at_end, 2);
  EXPECT_NE(thread, std::this_thread::get_id());
}

TEST(ActorTest, ManyProducers) {
  constexpr int kProducers = 8, kEach = 1000;
  int64_t sum = 0;
  {
    Actor<int> actor({.name = "sum", .capacity = 4},
                     [&](int message) { sum += message; });
    std::vector<std::thread> producers;
    for (int p = 0; p < kProducers; ++p) {
      producers.emplace_back([&] {
        for (int i = 0; i < kEach; ++i) actor.Send(1);
      });
    }
    for (std::thread& producer : producers) producer.join();
  }
  EXPECT_EQ(sum, kProducers * kEach);
}

TEST(ActorTest, ThreadBearsItsName) {
  std::string name;
  {
    Actor<int> actor({.name = "lane gradients of all"}, [&](int) {
      char kept[16];
      pthread_getname_np(pthread_self(), kept, sizeof(kept));
      name = kept;
    });
    actor.Send(1);
  }
  EXPECT_EQ(name, "lane gradients ");
}

TEST(ActorTest, FullMailboxPushesBack) {
  absl::Notification busy, go_on;
  Actor<int> actor({.name = "slow", .capacity = 2}, [&](int message) {
    if (message == 0) {
      busy.Notify();
      go_on.WaitForNotification();
    }
  });
  actor.Send(0);
  busy.WaitForNotification();
  EXPECT_TRUE(actor.SendWithin(absl::ZeroDuration(), 1).ok());
  EXPECT_TRUE(actor.SendWithin(absl::ZeroDuration(), 2).ok());
  EXPECT_EQ(actor.queued(), 2);
  EXPECT_TRUE(
      absl::IsDeadlineExceeded(actor.SendWithin(absl::ZeroDuration(), 3)));
  go_on.Notify();
  actor.Send(3);  // waits until there is room
}

TEST(ActorTest, StopFinishesWhatIsQueued) {
  absl::Notification busy, go_on;
  std::vector<int> seen;
  Actor<int> actor({.name = "finish", .capacity = 4}, [&](int message) {
    if (message == 0) {
      busy.Notify();
      go_on.WaitForNotification();
    }
    seen.push_back(message);
  });
  for (int i = 0; i < 4; ++i) actor.Send(i);
  busy.WaitForNotification();
  go_on.Notify();
  actor.Stop(StopMode::kFinishQueued);
  EXPECT_EQ(seen, (std::vector<int>{0, 1, 2, 3}));
  EXPECT_TRUE(
      absl::IsFailedPrecondition(actor.SendWithin(absl::Seconds(1), 9)));
  actor.Send(9);  // dropped
  actor.Stop(StopMode::kFinishQueued);
  EXPECT_EQ(seen.size(), 4);
}

TEST(ActorTest, StopWhileFullDropsAndFreesWaitingSenders) {
  absl::Notification busy, go_on;
  std::vector<int> seen;
  Actor<int> actor({.name = "drop", .capacity = 1}, [&](int message) {
    busy.Notify();
    go_on.WaitForNotification();
    seen.push_back(message);
  });
  actor.Send(0);
  busy.WaitForNotification();
  actor.Send(1);  // the mailbox is full now
  std::thread sender([&] { actor.Send(2); });
  std::thread stopper([&] { actor.Stop(StopMode::kDropQueued); });
  sender.join();  // returns although nothing was handled
  go_on.Notify();
  stopper.join();
  EXPECT_EQ(seen, std::vector<int>{0});
}

TEST(ActorTest, IdleActorIsDestroyed) {
  Actor<int> actor({.name = "idle"}, [](int) { FAIL(); });
}

TEST(ActorTest, MessagesMayBeTasks) {
  int done = 0;
  {
    Actor<Task> actor({.name = "tasks"}, RunTask);
    auto owned = std::make_unique<int>(5);
    actor.Send([&done, owned = std::move(owned)] { done = *owned; });
  }
  EXPECT_EQ(done, 5);
}

TEST(ActorTest, MaySendToItselfWhereThereIsRoom) {
  int count = 0;
  absl::Notification done;
  Actor<int>* self = nullptr;
  Actor<int> actor({.name = "self", .capacity = 1}, [&](int left) {
    ++count;
    if (left == 0) {
      done.Notify();
    } else {
      self->Send(left - 1);
    }
  });
  self = &actor;
  actor.Send(10);
  done.WaitForNotification();
  EXPECT_EQ(count, 11);
}

TEST(ActorDeathTest, WaitingForItselfIsABug) {
  EXPECT_DEATH(
      {
        Actor<int>* self = nullptr;
        Actor<int> actor({.name = "stuck", .capacity = 1}, [&](int) {
          self->Send(1);
          self->Send(2);
        });
        self = &actor;
        actor.Send(0);
        absl::Notification().WaitForNotificationWithTimeout(absl::Seconds(5));
      },
      "stuck sent itself");
}

}  // namespace
}  // namespace troupe
