#include "worker/service/session.h"

#include <thread>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "tests/worker/service/cut_off.h"
#include "tests/worker/service/fake_scheduler.h"

namespace troupe {
namespace {

SessionOptions OptionsFor(const std::string& address) {
  SessionOptions options = {.scheduler = address, .trust = {.insecure = 1}};
  options.registration.mutable_worker()->set_name("ada");
  options.heartbeat = [] {
    Heartbeat heartbeat;
    heartbeat.set_memory_bytes(42);
    return heartbeat;
  };
  return options;
}

bool IsHeartbeat(const WorkerMessage& m) {
  return m.has_heartbeat() && m.heartbeat().memory_bytes() == 42;
}

TEST(Session, RegistersAndTalksBothWays) {
  FakeScheduler scheduler;
  const auto session = Session::Open(OptionsFor(scheduler.address()));
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_EQ((*session)->registered().worker_id(), 7);

  WorkerMessage message;
  message.mutable_ended()->set_error("a word");
  ASSERT_TRUE((*session)->Send(message).ok());
  EXPECT_EQ(
      scheduler.AwaitMessages(1, [](const auto& m) { return m.has_ended(); })
          .size(),
      1u);

  SchedulerMessage order;
  order.mutable_stop()->set_reason("because");
  scheduler.Send("ada", order);
  const auto received = (*session)->Receive();
  ASSERT_TRUE(received.ok()) << received.status();
  EXPECT_EQ(received->stop().reason(), "because");
}

TEST(Session, HeartsBeatBesidesMessages) {
  FakeScheduler scheduler;
  const auto session = Session::Open(OptionsFor(scheduler.address()));
  ASSERT_TRUE(session.ok()) << session.status();
  for (int i = 0; i < 200; ++i) {
    WorkerMessage message;
    message.mutable_ended()->set_step(i);
    ASSERT_TRUE((*session)->Send(message).ok());
  }
  EXPECT_GE(scheduler.AwaitMessages(3, IsHeartbeat).size(), 3u);
  const auto in_order =
      scheduler.AwaitMessages(200, [](const auto& m) { return m.has_ended(); });
  ASSERT_EQ(in_order.size(), 200u);
  for (int i = 0; i < 200; ++i) EXPECT_EQ(in_order[i].ended().step(), i);
}

// As long as its scheduler is paused, a rank of quick steps goes on reporting.
TEST(Session, WhatAPausedSchedulerDoesNotReadWaits) {
  constexpr int64_t kSteps = 5'000;  // of 2 kB: more than the kernel holds
  FakeScheduler scheduler;
  const auto session = Session::Open(OptionsFor(scheduler.address()));
  ASSERT_TRUE(session.ok()) << session.status();
  scheduler.Pause(true);
  for (int64_t step = 1; step <= kSteps; ++step) {
    WorkerMessage message;
    message.mutable_ended()->set_step(step);
    message.mutable_ended()->set_error(std::string(2000, 'x'));
    ASSERT_TRUE((*session)->Send(message).ok()) << step;
  }
  scheduler.Pause(false);
  const auto last = scheduler.AwaitMessages(
      1, [](const auto& m) { return m.ended().step() == kSteps; });
  EXPECT_EQ(last.size(), 1u);
  EXPECT_EQ(scheduler.Count([](const auto& m) { return m.has_ended(); }),
            size_t{kSteps});
}

TEST(Session, CloseSaysGoodbyeAndEndsReceive) {
  FakeScheduler scheduler;
  const auto session = Session::Open(OptionsFor(scheduler.address()));
  ASSERT_TRUE(session.ok()) << session.status();
  std::thread receiver([&] { EXPECT_FALSE((*session)->Receive().ok()); });
  (*session)->Close("tired", absl::Seconds(5));
  receiver.join();
  EXPECT_TRUE(absl::IsUnavailable((*session)->Send(WorkerMessage())));
  const auto goodbye =
      scheduler.AwaitMessages(1, [](const auto& m) { return m.has_goodbye(); });
  ASSERT_EQ(goodbye.size(), 1u);
  EXPECT_EQ(goodbye[0].goodbye().reason(), "tired");
}

TEST(Session, ASchedulerThatGoesAwayEndsIt) {
  FakeScheduler scheduler;
  const auto session = Session::Open(OptionsFor(scheduler.address()));
  ASSERT_TRUE(session.ok()) << session.status();
  scheduler.EndSessions();
  EXPECT_FALSE((*session)->Receive().ok());
  EXPECT_FALSE((*session)->Send(WorkerMessage()).ok());
}

// Without its power or its network, a machine says no word.
TEST(Session, ASchedulerWhoseMachineIsGoneIsUnavailable) {
  FakeScheduler scheduler;
  SessionOptions options = OptionsFor(scheduler.address());
  options.unanswered_max = absl::Milliseconds(500);
  const auto session = Session::Open(options);
  ASSERT_TRUE(session.ok()) << session.status();
  ASSERT_EQ(CutOff(scheduler.port()), 1);
  const absl::Status over = (*session)->Receive().status();
  EXPECT_TRUE(absl::IsUnavailable(over)) << over;
  EXPECT_TRUE(absl::StrContains(over.message(), "has acknowledged nothing"))
      << over;
  EXPECT_TRUE(absl::IsUnavailable((*session)->Send(WorkerMessage())));
}

TEST(Session, ARefusalKeepsItsCodeAndItsWords) {
  FakeScheduler scheduler(
      {.refusal = absl::AlreadyExistsError("a live worker has the name")});
  EXPECT_EQ(Session::Open(OptionsFor(scheduler.address())).status(),
            absl::AlreadyExistsError("a live worker has the name"));
}

TEST(Session, NobodyThereIsUnavailable) {
  std::string address;
  {
    FakeScheduler gone;
    address = gone.address();
  }
  SessionOptions options = OptionsFor(address);
  options.connect_timeout = absl::Milliseconds(100);
  const absl::Status status = Session::Open(options).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), address)) << status;
}

TEST(Session, ASilentSchedulerIsUnavailable) {
  FakeScheduler scheduler({.answers = false});
  SessionOptions options = OptionsFor(scheduler.address());
  options.register_timeout = absl::Milliseconds(100);
  const absl::Status status = Session::Open(options).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "did not answer")) << status;
}

}  // namespace
}  // namespace troupe
