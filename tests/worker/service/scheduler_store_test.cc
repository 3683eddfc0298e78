#include "worker/service/scheduler_store.h"

#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace troupe {
namespace {

RankRef Ref() {
  RankRef ref;
  ref.set_job(3);
  ref.set_attempt(2);
  ref.set_rank(1);
  return ref;
}

StoreValue Value(const std::string& key, const std::string& value) {
  StoreValue message;
  message.set_key(key);
  message.set_value(value);
  return message;
}

TEST(SchedulerStore, AsksAndWaits) {
  std::vector<WorkerMessage> sent;
  SchedulerStore* answering = nullptr;
  SchedulerStore store(Ref(), [&](WorkerMessage message) {
    sent.push_back(message);
    if (message.has_store_get()) {
      answering->OnValue(Value(message.store_get().key(), "there"));
    }
    return absl::OkStatus();
  });
  answering = &store;
  EXPECT_TRUE(store.Set("mine", "here").ok());
  EXPECT_EQ(*store.Get("theirs", absl::Seconds(10)), "there");
  ASSERT_EQ(sent.size(), 2u);
  EXPECT_EQ(sent[0].store_set().key(), "mine");
  EXPECT_EQ(sent[0].store_set().value(), "here");
  EXPECT_EQ(sent[0].store_set().ref().attempt(), 2);
  EXPECT_EQ(sent[1].store_get().ref().rank(), 1);
  // What is known is not asked again.
  EXPECT_EQ(*store.Get("theirs", absl::Seconds(10)), "there");
  EXPECT_EQ(sent.size(), 2u);
}

TEST(SchedulerStore, OfThoseThatWantAKeyTheFirstHasIt) {
  std::vector<WorkerMessage> sent;
  SchedulerStore* answering = nullptr;
  SchedulerStore store(Ref(), [&](WorkerMessage message) {
    sent.push_back(message);
    if (!message.store_set().keep_first()) return absl::OkStatus();
    StoreValue answer = Value(message.store_set().key(), "another's");
    answer.set_lost(message.store_set().behind() == "forgotten");
    answering->OnValue(answer);
    return absl::OkStatus();
  });
  answering = &store;
  EXPECT_EQ(*store.SetFirst("l/0", "mine", "l"), "another's");
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].store_set().value(), "mine");
  EXPECT_EQ(sent[0].store_set().behind(), "l");
  EXPECT_EQ(*store.Get("l/0", absl::Seconds(10)), "another's");
  EXPECT_EQ(sent.size(), 1u) << "it is known";
  EXPECT_TRUE(
      absl::IsDataLoss(store.SetFirst("l/1", "mine", "forgotten").status()));
  EXPECT_TRUE(store.Erase("l/").ok());
  EXPECT_TRUE(sent.back().store_set().erase());
  store.Forget("l/");
  EXPECT_EQ(store.Get("l/0", absl::Milliseconds(1)).status().code(),
            absl::StatusCode::kDeadlineExceeded);
}

TEST(SchedulerStore, AnotherThreadsValueWakesTheWait) {
  SchedulerStore store(Ref(), [](WorkerMessage) { return absl::OkStatus(); });
  std::thread other([&] { store.OnValue(Value("key", "late")); });
  EXPECT_EQ(*store.Get("key", absl::Seconds(10)), "late");
  other.join();
}

TEST(SchedulerStore, AKeyThatNeverComesIsNamed) {
  SchedulerStore store(Ref(), [](WorkerMessage) { return absl::OkStatus(); });
  const absl::Status status =
      store.Get("rank 2's address", absl::Milliseconds(1)).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status));
  EXPECT_NE(status.message().find("rank 2's address"), absl::string_view::npos);
}

TEST(SchedulerStore, AbortEndsEveryWait) {
  SchedulerStore store(Ref(), [](WorkerMessage) { return absl::OkStatus(); });
  std::thread other([&] { store.Abort(absl::CancelledError("cancelled")); });
  EXPECT_EQ(store.Get("key", absl::InfiniteDuration()).status(),
            absl::CancelledError("cancelled"));
  other.join();
  EXPECT_EQ(store.Set("key", "value"), absl::CancelledError("cancelled"));
}

TEST(SchedulerStore, ALostSessionIsAnError) {
  SchedulerStore store(
      Ref(), [](WorkerMessage) { return absl::UnavailableError("over"); });
  EXPECT_EQ(store.Get("key", absl::InfiniteDuration()).status(),
            absl::UnavailableError("over"));
}

}  // namespace
}  // namespace troupe
