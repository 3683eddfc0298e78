#include "worker/actor/mailbox.h"

#include <memory>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"

namespace troupe {
namespace {

TEST(MailboxTest, KeepsOrder) {
  Mailbox<int> mailbox(10);
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(mailbox.Push(i).ok());
  EXPECT_EQ(mailbox.size(), 10);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(mailbox.Pop(), i);
  EXPECT_EQ(mailbox.size(), 0);
}

TEST(MailboxTest, MovesMessages) {
  Mailbox<std::unique_ptr<int>> mailbox(1);
  auto message = std::make_unique<int>(7);
  int* const address = message.get();
  ASSERT_TRUE(mailbox.Push(std::move(message)).ok());
  EXPECT_EQ(mailbox.Pop()->get(), address);
}

TEST(MailboxTest, RefusesWhatDoesNotFit) {
  Mailbox<int> mailbox(2);
  ASSERT_TRUE(mailbox.Push(1, absl::ZeroDuration()).ok());
  ASSERT_TRUE(mailbox.Push(2, absl::ZeroDuration()).ok());
  const absl::Status at_once = mailbox.Push(3, absl::ZeroDuration());
  EXPECT_TRUE(absl::IsDeadlineExceeded(at_once)) << at_once;
  const absl::Status later = mailbox.Push(3, absl::Milliseconds(5));
  EXPECT_TRUE(absl::IsDeadlineExceeded(later)) << later;
  EXPECT_NE(later.message().find("2 messages"), std::string::npos) << later;
  EXPECT_EQ(mailbox.Pop(), 1);
  EXPECT_TRUE(mailbox.Push(3, absl::ZeroDuration()).ok());
}

TEST(MailboxTest, PushWaitsForRoom) {
  Mailbox<int> mailbox(1);
  ASSERT_TRUE(mailbox.Push(0).ok());
  std::thread sender([&] {
    for (int i = 1; i < 1000; ++i) EXPECT_TRUE(mailbox.Push(i).ok());
  });
  for (int i = 0; i < 1000; ++i) {
    EXPECT_LE(mailbox.size(), 1);
    EXPECT_EQ(mailbox.Pop(), i);
  }
  sender.join();
}

TEST(MailboxTest, ManySendersAndReceivers) {
  constexpr int kSenders = 4, kReceivers = 3, kEach = 2000;
  Mailbox<int> mailbox(5);
  std::vector<std::thread> senders, receivers;
  std::vector<int64_t> sums(kReceivers), counts(kReceivers);
  for (int r = 0; r < kReceivers; ++r) {
    receivers.emplace_back([&, r] {
      while (std::optional<int> message = mailbox.Pop()) {
        sums[r] += *message;
        ++counts[r];
      }
    });
  }
  for (int s = 0; s < kSenders; ++s) {
    senders.emplace_back([&] {
      for (int i = 1; i <= kEach; ++i) EXPECT_TRUE(mailbox.Push(i).ok());
    });
  }
  for (std::thread& sender : senders) sender.join();
  mailbox.Close();
  for (std::thread& receiver : receivers) receiver.join();
  EXPECT_EQ(counts[0] + counts[1] + counts[2], kSenders * kEach);
  EXPECT_EQ(sums[0] + sums[1] + sums[2],
            int64_t{kSenders} * kEach * (kEach + 1) / 2);
}

TEST(MailboxTest, CloseKeepsWhatIsQueuedAndRefusesTheRest) {
  Mailbox<int> mailbox(4);
  ASSERT_TRUE(mailbox.Push(1).ok());
  mailbox.Close();
  mailbox.Close();
  EXPECT_TRUE(absl::IsFailedPrecondition(mailbox.Push(2)));
  EXPECT_EQ(mailbox.Pop(), 1);
  EXPECT_EQ(mailbox.Pop(), std::nullopt);
  EXPECT_EQ(mailbox.Pop(), std::nullopt);
}

TEST(MailboxTest, CloseWakesSendersAndReceivers) {
  Mailbox<int> full(1), empty(1);
  ASSERT_TRUE(full.Push(1).ok());
  std::thread sender(
      [&] { EXPECT_TRUE(absl::IsFailedPrecondition(full.Push(2))); });
  std::thread receiver([&] { EXPECT_EQ(empty.Pop(), std::nullopt); });
  full.Close();
  empty.Close();
  sender.join();
  receiver.join();
  EXPECT_EQ(full.Pop(), 1);
  EXPECT_EQ(full.Pop(), std::nullopt);
}

TEST(MailboxTest, CloseAndDropDestroysWhatIsQueued) {
  Mailbox<std::shared_ptr<int>> mailbox(4);
  auto message = std::make_shared<int>(1);
  ASSERT_TRUE(mailbox.Push(message).ok());
  ASSERT_TRUE(mailbox.Push(message).ok());
  EXPECT_EQ(message.use_count(), 3);
  mailbox.CloseAndDrop();
  EXPECT_EQ(message.use_count(), 1);
  EXPECT_EQ(mailbox.Pop(), std::nullopt);
}

}  // namespace
}  // namespace troupe
