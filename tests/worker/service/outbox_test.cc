#include "worker/service/outbox.h"

#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"

namespace troupe {
namespace {

WorkerMessage StepOf(int64_t step) {
  WorkerMessage message;
  message.mutable_step()->mutable_record()->set_step(step);
  message.mutable_step()->mutable_timeline()->set_rank(3);
  return message;
}
WorkerMessage SetOf(const std::string& key) {
  WorkerMessage message;
  message.mutable_store_set()->set_key(key);
  return message;
}
WorkerMessage GetOf(const std::string& key) {
  WorkerMessage message;
  message.mutable_store_get()->set_key(key);
  return message;
}
WorkerMessage ReadyOf() {
  WorkerMessage message;
  message.mutable_rank_ready()->set_first_step(1);
  return message;
}
WorkerMessage ShardOf(int64_t step) {
  WorkerMessage message;
  message.mutable_shard()->set_step(step);
  return message;
}
WorkerMessage UnwrittenOf(int64_t step) {
  WorkerMessage message;
  message.mutable_unwritten()->set_step(step);
  return message;
}
WorkerMessage CommittedOf(int64_t step) {
  WorkerMessage message;
  message.mutable_committed()->mutable_checkpoint()->set_step(step);
  return message;
}
SchedulerMessage DoneOf(int64_t step, bool unstored = false) {
  SchedulerMessage message;
  message.mutable_done()->set_step(step);
  message.mutable_done()->set_unstored(unstored);
  return message;
}
WorkerMessage EndedOf() {
  WorkerMessage message;
  message.mutable_ended()->set_ok(true);
  return message;
}
SchedulerMessage StoredOf(int64_t step, bool ready, bool ended) {
  SchedulerMessage message;
  message.mutable_stored()->set_step(step);
  message.mutable_stored()->set_ready(ready);
  message.mutable_stored()->set_ended(ended);
  return message;
}

std::string Words(const WorkerMessage& message) {
  if (message.has_step()) {
    return absl::StrCat("step ", message.step().record().step(),
                        message.step().has_timeline() ? " traced" : "");
  }
  if (message.has_store_set()) return "set " + message.store_set().key();
  if (message.has_store_get()) return "get " + message.store_get().key();
  if (message.has_rank_ready()) return "ready";
  if (message.has_shard())
    return absl::StrCat("shard ", message.shard().step());
  if (message.has_unwritten())
    return absl::StrCat("unwritten ", message.unwritten().step());
  if (message.has_committed()) {
    return absl::StrCat("committed ", message.committed().checkpoint().step());
  }
  if (message.ended().kept_size() > 0) return "ended, and keeps";
  return message.has_ended() ? "ended" : "leaving";
}

// What was heard in one session.
struct Heard {
  std::vector<std::string> words;
  SendToScheduler Hear() {
    return [this](WorkerMessage message) {
      words.push_back(Words(message));
      return absl::OkStatus();
    };
  }
};

using W = std::vector<std::string>;

// The words of a session that begins now.
W SaidAgain(Outbox& outbox) {
  outbox.Detach();
  Heard heard;
  outbox.Attach(heard.Hear());
  outbox.Detach();
  return heard.words;
}

// What several may set is asked for like a value: until that comes.
TEST(Outbox, KeepsAKeyThatSeveralMaySetUntilItsValueComes) {
  Outbox outbox;
  Heard first;
  outbox.Attach(first.Hear());
  WorkerMessage message = SetOf("l/0");
  message.mutable_store_set()->set_keep_first(true);
  ASSERT_TRUE(outbox.Send(message).ok());
  SchedulerMessage stored;
  stored.mutable_stored()->set_ready(true);
  outbox.OnMessage(stored);
  EXPECT_EQ(SaidAgain(outbox), W{"set l/0"});
  SchedulerMessage value;
  value.mutable_store_value()->set_key("l/0");
  outbox.OnMessage(value);
  EXPECT_EQ(SaidAgain(outbox), W{});
}

TEST(Outbox, SaysEachMessageOnceInASession) {
  Outbox outbox;
  Heard heard;
  outbox.Attach(heard.Hear());
  ASSERT_TRUE(outbox.Send(ReadyOf()).ok());
  ASSERT_TRUE(outbox.Send(StepOf(1)).ok());
  EXPECT_EQ(heard.words, (W{"ready", "step 1 traced"}));
  EXPECT_EQ(SaidAgain(outbox), (W{"ready", "step 1"}));
}

TEST(Outbox, SaysAgainWhatIsNotKnownToBeStored) {
  Outbox outbox;
  Heard first;
  outbox.Attach(first.Hear());
  for (const WorkerMessage& message :
       {SetOf("a"), GetOf("b"), GetOf("c"), ReadyOf(), StepOf(1), StepOf(2),
        ShardOf(2), CommittedOf(2), StepOf(3), ShardOf(4)}) {
    ASSERT_TRUE(outbox.Send(message).ok());
  }
  SchedulerMessage value;
  value.mutable_store_value()->set_key("b");
  outbox.OnMessage(value);
  outbox.OnMessage(StoredOf(1, false, false));
  EXPECT_EQ(SaidAgain(outbox), (W{"set a", "get c", "ready", "step 2",
                                  "committed 2", "step 3", "shard 4"}));
  outbox.OnMessage(DoneOf(2));
  outbox.OnMessage(StoredOf(2, true, false));
  EXPECT_EQ(SaidAgain(outbox), (W{"get c", "step 3", "shard 4"}))
      << "a replica may wait for its turn";
  ASSERT_TRUE(outbox.Send(EndedOf()).ok());
  EXPECT_FALSE(outbox.done());
  EXPECT_EQ(SaidAgain(outbox), (W{"get c", "step 3", "shard 4", "ended"}));
  outbox.OnMessage(StoredOf(0, true, true));
  EXPECT_TRUE(outbox.done());
  EXPECT_EQ(SaidAgain(outbox), W());
}

TEST(Outbox, WhatIsSaidBetweenSessionsWaits) {
  Outbox outbox;
  ASSERT_TRUE(outbox.Send(StepOf(7)).ok());
  WorkerMessage leaving;
  leaving.mutable_leaving()->set_reason("now or never");
  EXPECT_TRUE(absl::IsUnavailable(outbox.Send(leaving)));
  ASSERT_TRUE(outbox.Send(StepOf(8)).ok());
  EXPECT_EQ(SaidAgain(outbox), (W{"step 7", "step 8"}));
}

// A message on which the session broke was perhaps not heard.
TEST(Outbox, ASessionThatBreaksIsNotSpokenTo) {
  Outbox outbox;
  int said = 0;
  outbox.Attach([&said](WorkerMessage) {
    return ++said < 3 ? absl::OkStatus() : absl::UnavailableError("over");
  });
  for (int64_t step = 1; step <= 5; ++step) {
    ASSERT_TRUE(outbox.Send(StepOf(step)).ok());
  }
  EXPECT_EQ(said, 3);
  EXPECT_EQ(SaidAgain(outbox),
            (W{"step 1", "step 2", "step 3", "step 4", "step 5"}));
}

TEST(Outbox, ARankWaitsWhereTooMuchWaits) {
  Outbox outbox(/*bytes_max=*/30);
  absl::Notification blocked_steps_are_said;
  std::thread rank([&] {
    for (int64_t step = 1; step <= 50; ++step) {
      EXPECT_TRUE(outbox.Send(StepOf(step)).ok());
    }
    blocked_steps_are_said.Notify();
  });
  EXPECT_FALSE(blocked_steps_are_said.WaitForNotificationWithTimeout(
      absl::Milliseconds(50)));
  Heard heard;
  outbox.Attach(heard.Hear());
  rank.join();
  outbox.Detach();
  EXPECT_EQ(heard.words.size(), 50u);
  EXPECT_EQ(heard.words.back(), "step 50 traced");
}

TEST(Outbox, AtTheEndOfTheWorkerNobodyWaits) {
  Outbox outbox(/*bytes_max=*/1);
  ASSERT_TRUE(outbox.Send(StepOf(1)).ok());
  absl::Status sent;
  std::thread rank([&] { sent = outbox.Send(StepOf(2)); });
  outbox.Close(absl::CancelledError("the worker stops"));
  rank.join();
  EXPECT_EQ(sent, absl::CancelledError("the worker stops"));
}

TEST(Outbox, WhatIsForgottenIsNotSaid) {
  Outbox outbox;
  ASSERT_TRUE(outbox.Send(StepOf(1)).ok());
  outbox.Forget();
  EXPECT_TRUE(outbox.done());
  EXPECT_TRUE(outbox.Send(EndedOf()).ok());
  EXPECT_EQ(SaidAgain(outbox), W());
}

// The scheduler that told it so may not have written that it did.
TEST(Outbox, WhatIsGivenUpIsNotSaidToBeKept) {
  Outbox outbox;
  WorkerMessage ended = EndedOf();
  ended.mutable_ended()->add_kept()->set_own(true);
  ASSERT_TRUE(outbox.Send(ended).ok());
  EXPECT_EQ(SaidAgain(outbox), W({"ended, and keeps"}));
  SchedulerMessage message;
  message.mutable_stop()->set_give_up_kept(true);
  outbox.OnMessage(message);
  EXPECT_EQ(SaidAgain(outbox), W({"ended"}));
}

// The next scheduler knows nothing of what was given up, nor of an earlier
// commit.
TEST(Outbox, TheLastAnswerIsKeptUntilACheckpointIsCommitted) {
  Outbox outbox;
  for (const WorkerMessage& message :
       {CommittedOf(2), ShardOf(4), UnwrittenOf(4)}) {
    ASSERT_TRUE(outbox.Send(message).ok());
  }
  // Rank 0 could write its shard, and not commit.
  EXPECT_EQ(SaidAgain(outbox), (W{"committed 2", "unwritten 4"}));
  SchedulerMessage given_up = DoneOf(4);
  given_up.mutable_done()->set_given_up("ENOSPC");
  outbox.OnMessage(given_up);
  EXPECT_EQ(SaidAgain(outbox), (W{"committed 2", "unwritten 4"}));
  ASSERT_TRUE(outbox.Send(ShardOf(6)).ok());
  EXPECT_EQ(SaidAgain(outbox), (W{"committed 2", "shard 6"}));
  outbox.OnMessage(DoneOf(6));
  EXPECT_EQ(SaidAgain(outbox), W());
}

// The next scheduler knows only what was stored.
TEST(Outbox, ACommitIsKeptUntilItIsStored) {
  Outbox outbox;
  for (const WorkerMessage& message :
       {ShardOf(2), CommittedOf(2), ShardOf(4), CommittedOf(4), ShardOf(6)}) {
    ASSERT_TRUE(outbox.Send(message).ok());
  }
  outbox.OnMessage(DoneOf(2, /*unstored=*/true));
  EXPECT_EQ(SaidAgain(outbox), (W{"committed 2", "committed 4", "shard 6"}));
  outbox.OnMessage(DoneOf(4, /*unstored=*/true));
  EXPECT_EQ(SaidAgain(outbox), (W{"committed 2", "committed 4", "shard 6"}));
  // Stored with the steps that follow; a shard is kept until its Done.
  SchedulerMessage stored = StoredOf(7, true, false);
  stored.mutable_stored()->set_checkpoint(2);
  outbox.OnMessage(stored);
  EXPECT_EQ(SaidAgain(outbox), (W{"committed 4", "shard 6"}));
  stored.mutable_stored()->set_checkpoint(6);
  outbox.OnMessage(stored);
  EXPECT_EQ(SaidAgain(outbox), W{"shard 6"});
  ASSERT_TRUE(outbox.Send(CommittedOf(6)).ok());
  outbox.OnMessage(DoneOf(6));
  EXPECT_EQ(SaidAgain(outbox), W());
}

// A scheduler whose disk is full hears all, and training goes on; what it
// cannot write is not kept for ever.
TEST(Outbox, ASchedulerThatStoresNothingHoldsNobodyUp) {
  Outbox outbox(/*bytes_max=*/200);
  Heard heard;
  outbox.Attach(heard.Hear());
  ASSERT_TRUE(outbox.Send(ShardOf(1)).ok());
  for (int64_t step = 1; step <= 500; ++step) {
    ASSERT_TRUE(outbox.Send(StepOf(step)).ok());
  }
  EXPECT_EQ(heard.words.size(), 501u);
  const W again = SaidAgain(outbox);
  EXPECT_LT(again.size(), 60u);
  EXPECT_EQ(again.front(), "shard 1");
  EXPECT_EQ(again.back(), "step 500");
}

TEST(Outbox, CommitsThatAreNeverStoredAreBoundedToo) {
  Outbox outbox(/*bytes_max=*/200);
  Heard heard;
  outbox.Attach(heard.Hear());
  for (int64_t step = 1; step <= 500; ++step) {
    ASSERT_TRUE(outbox.Send(CommittedOf(step)).ok());
    outbox.OnMessage(DoneOf(step, /*unstored=*/true));
  }
  const W again = SaidAgain(outbox);
  EXPECT_LT(again.size(), 60u);
  EXPECT_EQ(again.back(), "committed 500");
}

}  // namespace
}  // namespace troupe
