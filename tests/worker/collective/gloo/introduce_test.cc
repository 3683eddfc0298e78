#include "worker/collective/gloo/introduce.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "proto/base/steady_time.h"
#include "proto/trust/secret.h"
#include "tests/worker/collective/gloo/counting_store.h"
#include "tests/worker/collective/gloo/socket_address.h"
#include "tests/worker/collective/ranks.h"

namespace troupe {
namespace {

using Introduced = absl::StatusOr<GroupIntroduction>;
// Where rank `from` listens for rank `to`.
using Place = sockaddr_storage (*)(int from, int to);

sockaddr_storage OnV4(int from, int to) {
  return SocketAddress(absl::StrCat("10.0.", from / 256, ".", from % 256),
                       20'000 + to);
}
sockaddr_storage OnV6(int from, int to) {
  return SocketAddress(absl::StrCat("fe80::", from, ":0"), 256 * (to + 1));
}

ListeningSockets Own(int rank, int size, Place place) {
  ListeningSockets own(size);
  for (int peer = 0; peer < size; ++peer) {
    if (peer != rank) own[peer] = place(rank, peer);
  }
  return own;
}

struct Meeting {
  explicit Meeting(int size) : views(size, CountingStore(store)) {
    for (int i = 0; i < size; ++i) outcomes.push_back(absl::UnknownError(""));
  }

  void Join(int rank, Place place, absl::Duration time) {
    const int size = static_cast<int>(outcomes.size());
    const CommunicatorSeat seat = TestSeat(size, rank, &views[rank]);
    outcomes[rank] =
        Introduce(seat, Own(rank, size, place), SteadyNow() + time);
  }

  InMemoryStore store;
  std::deque<CountingStore> views;
  std::vector<Introduced> outcomes;
};

void ExpectAllFound(const Meeting& meeting, Place place) {
  const int size = static_cast<int>(meeting.outcomes.size());
  for (int rank = 0; rank < size; ++rank) {
    const Introduced& found = meeting.outcomes[rank];
    ASSERT_TRUE(found.ok()) << rank << ": " << found.status();
    ASSERT_EQ(found->secret.size(), kSecretDigits);
    ASSERT_EQ(found->secret, meeting.outcomes[0]->secret);
    for (int peer = 0; peer < size; ++peer) {
      const sockaddr_storage expected =
          peer == rank ? sockaddr_storage() : place(peer, rank);
      ASSERT_EQ(std::memcmp(&found->sockets[peer], &expected, sizeof(expected)),
                0)
          << "rank " << rank << " of rank " << peer;
    }
  }
}

TEST(IntroduceTest, EverybodyLearnsWherePeersListenForIt) {
  for (const Place place : {&OnV4, &OnV6}) {
    for (const int size : {2, 3, 7}) {
      Meeting meeting(size);
      OnThreads(size,
                [&](int rank) { meeting.Join(rank, place, absl::Minutes(1)); });
      ExpectAllFound(meeting, place);
    }
  }
}

TEST(IntroduceTest, EachMeetingHasASecretOfItsOwn) {
  Meeting first(2);
  OnThreads(2, [&](int rank) { first.Join(rank, &OnV4, absl::Minutes(1)); });
  Meeting second(2);
  OnThreads(2, [&](int rank) { second.Join(rank, &OnV4, absl::Minutes(1)); });
  EXPECT_NE(first.outcomes[0]->secret, second.outcomes[0]->secret);
}

TEST(IntroduceTest, AThousandMembersMoveTwentyBytesForEachPeer) {
  constexpr int kSize = 1024;
  Meeting meeting(kSize);
  OnThreads(kSize,
            [&](int rank) { meeting.Join(rank, &OnV4, absl::Minutes(5)); });
  ExpectAllFound(meeting, &OnV4);
  int64_t set = 0;
  int64_t fetched = 0;
  for (int rank = 1; rank < kSize; ++rank) {
    set = std::max(set, meeting.views[rank].bytes_set);
    fetched = std::max(fetched, meeting.views[rank].bytes_fetched);
  }
  EXPECT_LE(set, 3 * kSize);
  EXPECT_LE(fetched, 20 * kSize);
  // The first: what all have set, once in and once out.
  EXPECT_LE(meeting.views[0].bytes_fetched, 3 * kSize * kSize);
  EXPECT_LE(meeting.views[0].bytes_set, 3 * kSize * kSize);
}

TEST(IntroduceTest, AllNameTheMemberThatDoesNotCome) {
  for (const int missing : {0, 3}) {
    Meeting meeting(5);
    OnThreads(5, [&](int rank) {
      if (rank != missing) {
        meeting.Join(rank, &OnV4, absl::Milliseconds(500));
      }
    });
    for (int rank = 0; rank < 5; ++rank) {
      if (rank == missing) continue;
      const absl::Status& status = meeting.outcomes[rank].status();
      EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
      EXPECT_TRUE(absl::StartsWith(
          status.message(),
          absl::StrCat("rank ", GlobalRank(missing), " did not come")))
          << status;
    }
  }
}

TEST(IntroduceTest, RefusesWhatItCannotRead) {
  for (const char* nonsense : {"", "x", "9 short", "3 abc", "3 abc2 zz"}) {
    InMemoryStore store;
    CommunicatorSeat seat = TestSeat(2, 0, &store);
    ASSERT_TRUE(store.Set("test-group/gloo/1", nonsense).ok());
    const absl::Status status =
        Introduce(seat, Own(0, 2, &OnV4), SteadyNow() + absl::Minutes(1))
            .status();
    EXPECT_TRUE(absl::IsInternal(status)) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), "another version"));
  }
  for (const char* nonsense :
       {"", "+", "+9 short", "-3 abc", "+1 a1 b1 c", "+1 a1 b"}) {
    InMemoryStore store;
    ASSERT_TRUE(store.Set("test-group/gloo/hosts", nonsense).ok());
    ASSERT_TRUE(store.Set("test-group/gloo/ports/1", "abcd").ok());
    const absl::Status status =
        Introduce(TestSeat(2, 1, &store), Own(1, 2, &OnV4),
                  SteadyNow() + absl::Minutes(1))
            .status();
    EXPECT_TRUE(absl::IsInternal(status)) << status;
  }
}

}  // namespace
}  // namespace troupe
