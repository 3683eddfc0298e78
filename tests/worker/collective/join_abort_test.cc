#include "worker/collective/join_abort.h"

#include <memory>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "tests/worker/collective/ranks.h"
#include "worker/collective/create_communicator.h"

namespace troupe {
namespace {

const absl::Status& Why() {
  static const auto* const why =
      new absl::Status(absl::CancelledError("its user changed his mind"));
  return *why;
}

TEST(JoinAbort, CallsWhoWaitsNowAndWhoWaitsLater) {
  JoinAbort abort;
  int calls = 0;
  const auto count = [&](const absl::Status& why) {
    EXPECT_EQ(why, Why());
    ++calls;
  };
  { const JoinAbort::Interrupt over(&abort, count); }
  EXPECT_TRUE(abort.status().ok());
  const JoinAbort::Interrupt one(&abort, count);
  const JoinAbort::Interrupt two(&abort, count);
  abort.Abort(Why());
  EXPECT_EQ(calls, 2);
  abort.Abort(absl::UnavailableError("later"));
  EXPECT_EQ(calls, 2) << "once";
  EXPECT_EQ(abort.status(), Why());
  const JoinAbort::Interrupt late(&abort, count);
  EXPECT_EQ(calls, 3);
  const JoinAbort::Interrupt nobodys(nullptr, count);
  EXPECT_EQ(calls, 3);
}

TEST(JoinAbort, NobodyJoinsAfterIt) {
  for (const char* backend : {"in_process", "shared_memory", "gloo"}) {
    InMemoryStore store;
    JoinAbort abort;
    abort.Abort(Why());
    CommunicatorSeat seat = TestSeat(2, 0, &store);
    seat.abort = &abort;
    EXPECT_EQ(CreateCommunicator(backend, seat).status(), Why()) << backend;
  }
}

// A store that says when a key has been got, and holds a rank at a key for as
// long as the test wants.
class WatchedStore final : public KeyValueStore {
 public:
  WatchedStore(InMemoryStore& store, std::string key)
      : store_(store), key_(std::move(key)) {}

  absl::Status Set(absl::string_view key, absl::string_view value) override {
    const absl::Status set = store_.Set(key, value);
    if (key == key_ && !reached.HasBeenNotified()) reached.Notify();
    return set;
  }
  absl::StatusOr<std::string> Get(absl::string_view key,
                                  absl::Duration timeout) override {
    if (hold) go_on.WaitForNotification();
    absl::StatusOr<std::string> got = store_.Get(key, timeout);
    if (key == key_ && !reached.HasBeenNotified()) reached.Notify();
    return got;
  }

  absl::StatusOr<std::shared_ptr<void>> Share(
      absl::string_view key,
      absl::FunctionRef<std::shared_ptr<void>()> make) override {
    auto shared = store_.Share(key, make);
    if (key == key_ && !reached.HasBeenNotified()) reached.Notify();
    return shared;
  }

  bool hold = false;  // a rank that gets a key
  absl::Notification go_on;
  absl::Notification reached;  // the key was set, got or shared

 private:
  InMemoryStore& store_;
  const std::string key_;
};

// Rank 0 joins with a peer of which it knows, but which does nothing more;
// the status of its join when it was aborted there.
absl::Status AbortedJoin(const std::string& backend, WatchedStore& store) {
  JoinAbort abort;
  CommunicatorSeat seat = TestSeat(2, 0, &store);
  seat.abort = &abort;
  absl::Status status;
  std::thread joining(
      [&] { status = CreateCommunicator(backend, seat).status(); });
  store.reached.WaitForNotification();
  abort.Abort(Why());
  joining.join();
  return status;
}

TEST(JoinAbort, EndsAJoinWithThreadsOfOneProcess) {
  InMemoryStore memory;
  WatchedStore store(memory, "test-group/in_process");
  EXPECT_EQ(AbortedJoin("in_process", store), Why());
}

TEST(JoinAbort, EndsAJoinWhoseSegmentIsThere) {
  InMemoryStore memory;
  // Rank 1 has mapped it, and never comes to the first meeting.
  ASSERT_TRUE(memory.Set("test-group/shared_memory/1", "ok").ok());
  WatchedStore store(memory, "test-group/shared_memory/1");
  EXPECT_EQ(AbortedJoin("shared_memory", store), Why());
}

TEST(JoinAbort, EndsAJoinThatWaitsForAConnection) {
  // Which of two ranks dials, and does not have to wait, their ports decide.
  bool waited = false;
  for (int attempt = 0; attempt < 64 && !waited; ++attempt) {
    InMemoryStore memory;
    // Rank 1 listens, and says where, but never looks for rank 0.
    WatchedStore held(memory, "test-group/gloo/1");
    held.hold = true;
    CommunicatorSeat peer = TestSeat(2, 1, &held);
    std::thread hanging(
        [&] { EXPECT_FALSE(CreateCommunicator("gloo", peer).ok()); });
    held.reached.WaitForNotification();
    WatchedStore store(memory, "test-group/gloo/1");
    const absl::Status status = AbortedJoin("gloo", store);
    EXPECT_TRUE(status.ok() || status == Why()) << status;
    waited = !status.ok();
    memory.Abort(absl::CancelledError("the test is over"));
    held.go_on.Notify();
    hanging.join();
  }
  EXPECT_TRUE(waited);
}

}  // namespace
}  // namespace troupe
