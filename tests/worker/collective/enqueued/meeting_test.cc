#include "worker/collective/enqueued/meeting.h"

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "tests/worker/collective/ranks.h"

namespace troupe {
namespace {

void AtMeeting(int ranks, const std::function<void(int, HostMeeting&)>& body) {
  TogetherOwning({.backend = "in_process", .ranks = ranks},
                 [&](std::unique_ptr<Communicator> communicator) {
                   const int rank = communicator->rank();
                   HostMeeting meeting(std::move(communicator));
                   body(rank, meeting);
                 });
}

TEST(MeetingTest, AllMeetAndPairsMeet) {
  AtMeeting(3, [](int rank, HostMeeting& meeting) {
    EXPECT_TRUE(meeting.With({}, {.name = "gradients"}).ok());
    if (rank == 2) return;
    EXPECT_TRUE(meeting.With({.to = 1 - rank, .from = 1 - rank}, {}).ok());
  });
}

TEST(MeetingTest, ARingMeetsAndSoDoItsEnds) {
  AtMeeting(4, [](int rank, HostMeeting& meeting) {
    EXPECT_TRUE(meeting
                    .With({.to = (rank + 1) % 4, .from = (rank + 3) % 4},
                          {.name = "keys"})
                    .ok());
    // 0 to 1 to 2: the one between meets both.
    if (rank == 3) return;
    const HostMeeting::Peers peers[] = {
        {.to = 1}, {.to = 2, .from = 0}, {.from = 1}};
    EXPECT_TRUE(meeting.With(peers[rank], {}).ok());
  });
}

// Both ways at once here, one after the other there.
TEST(MeetingTest, TransfersMeetOneByOne) {
  AtMeeting(2, [](int rank, HostMeeting& meeting) {
    if (rank == 0) {
      EXPECT_TRUE(meeting.With({.to = 1, .from = 1}, {}).ok());
    } else {
      EXPECT_TRUE(meeting.With({.from = 0}, {}).ok());
      EXPECT_TRUE(meeting.With({.to = 0}, {}).ok());
    }
  });
}

// The operation puts its own words before it.
TEST(MeetingTest, SaysOnlyWhoDidNotCome) {
  absl::Notification over;
  AtMeeting(2, [&](int rank, HostMeeting& meeting) {
    if (rank == 1) {
      over.WaitForNotification();
      return;
    }
    const absl::Status status = meeting.With(
        {}, {.name = "gradients", .timeout = absl::Milliseconds(50)});
    EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
    EXPECT_EQ(status.message().substr(0, 21), "rank 10 did not come ")
        << status;
    EXPECT_EQ(MissingRank(status), 10);
    over.Notify();
  });
}

TEST(MeetingTest, AnAbortReachesThePeers) {
  AtMeeting(2, [](int rank, HostMeeting& meeting) {
    if (rank == 1) {
      meeting.Abort(absl::CancelledError("enough"));
      return;
    }
    const absl::Status status =
        meeting.With({}, {.timeout = absl::Seconds(100)});
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  });
}

}  // namespace
}  // namespace troupe
