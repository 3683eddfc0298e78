// Those that come in a member's place.
#include "worker/collective/gloo/prove_members.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "proto/base/check.h"
#include "proto/base/steady_time.h"
#include "tests/proto/trust/captured_log.h"
#include "tests/worker/collective/gloo/socket_address.h"
#include "tests/worker/collective/ranks.h"
#include "worker/collective/gloo/introduce.h"
#include "worker/collective/gloo/mesh.h"

namespace troupe {
namespace {

// Gives a secret of another attempt to callers that look through it.
class OtherAttempt final : public KeyValueStore {
 public:
  explicit OtherAttempt(KeyValueStore& store) : store_(store) {}
  absl::Status Set(absl::string_view key, absl::string_view value) override {
    return store_.Set(key, value);
  }
  absl::StatusOr<std::string> Get(absl::string_view key,
                                  absl::Duration timeout) override {
    absl::StatusOr<std::string> value = store_.Get(key, timeout);
    // "+64 <secret>..."
    if (value.ok() && absl::EndsWith(key, "/hosts")) {
      char& digit = (*value)[4];
      digit = digit == '0' ? '1' : '0';
    }
    return value;
  }

 private:
  KeyValueStore& store_;
};

TEST(ProveMembers, WhoDoesNotKnowTheSecretOfThisAttemptIsRefused) {
  constexpr int kRanks = 3;
  constexpr int kStranger = 2;
  const CapturedLog log;
  InMemoryStore store;
  OtherAttempt other(store);
  std::vector<absl::Status> outcomes(kRanks);
  OnThreads(kRanks, [&](int index) {
    CommunicatorSeat seat = TestSeat(kRanks, index, &store);
    if (index == kStranger) seat.store = &other;
    outcomes[index] = GlooMesh::Connect(seat).status();
  });
  for (const absl::Status& status : outcomes) {
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  }
  const std::string blame =
      absl::StrCat("rank ", GlobalRank(kStranger), " cannot be reached");
  EXPECT_TRUE(absl::StrContains(outcomes[0].message(), blame) ||
              absl::StrContains(outcomes[1].message(), blame))
      << outcomes[0] << outcomes[1];
  log.Await(1, "does not know the secret");
  EXPECT_GE(log.Count("refused a peer: in the place of rank "), 1u);
}

// Rank 0 waits for rank 1, in whose place comes somebody with a plain socket.
absl::Status MeetStranger(const std::function<void(int socket)>& stranger,
                          absl::Duration timeout) {
  absl::Status outcome;
  InMemoryStore store;
  OnThreads(2, [&](int index) {
    CommunicatorSeat seat = TestSeat(2, index, &store);
    if (index == 0) {
      seat.timeout = timeout;
      outcome = GlooMesh::Connect(seat).status();
      return;
    }
    // The higher port dials.
    const ListeningSockets nowhere = {SocketAddress("127.0.0.1", 65535), {}};
    const auto introduced =
        Introduce(seat, nowhere, SteadyNow() + absl::Minutes(1));
    CHECK_OK(introduced.status());
    const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
    CHECK(connect(socket,
                  reinterpret_cast<const sockaddr*>(&introduced->sockets[0]),
                  sizeof(sockaddr_in)) == 0);
    stranger(socket);
    close(socket);
  });
  return outcome;
}

void HearAll(int socket) {
  char bytes[256];
  while (recv(socket, bytes, sizeof(bytes), 0) > 0) {
  }
}

void ExpectRefused(const absl::Status& status, absl::Time start) {
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "rank 10 cannot be reached"))
      << status;
  EXPECT_LT(SteadyNow() - start, absl::Seconds(8));
}

TEST(ProveMembers, SilenceAndGarbageEndInTime) {
  const std::string garbage(4096, '\xa5');
  for (const std::string& said : {std::string(), garbage}) {
    const absl::Time start = SteadyNow();
    const CapturedLog log;
    ExpectRefused(MeetStranger(
                      [&](int socket) {
                        send(socket, said.data(), said.size(), MSG_NOSIGNAL);
                        HearAll(socket);
                      },
                      absl::Seconds(1)),
                  start);
    log.Await(1, "refused a peer: in the place of rank 10");
    EXPECT_EQ(log.Count("refused a peer: in the place of rank 10"), 1u);
  }
}

TEST(ProveMembers, WhoHangsUpIsNamed) {
  const CapturedLog log;
  ExpectRefused(MeetStranger([](int) {}, absl::Minutes(1)), SteadyNow());
  EXPECT_EQ(log.Count("refused a peer"), 0u) << "a member that is gone is none";
}

TEST(ProveMembers, AnAbortEndsTheWait) {
  JoinAbort abort;
  absl::Status outcome;
  InMemoryStore store;
  OnThreads(2, [&](int index) {
    CommunicatorSeat seat = TestSeat(2, index, &store);
    if (index == 0) {
      seat.abort = &abort;
      outcome = GlooMesh::Connect(seat).status();
      return;
    }
    const ListeningSockets nowhere = {SocketAddress("127.0.0.1", 65535), {}};
    const auto introduced =
        Introduce(seat, nowhere, SteadyNow() + absl::Minutes(1));
    CHECK_OK(introduced.status());
    const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
    CHECK(connect(socket,
                  reinterpret_cast<const sockaddr*>(&introduced->sockets[0]),
                  sizeof(sockaddr_in)) == 0);
    // It has begun to prove itself.
    char byte;
    CHECK(recv(socket, &byte, 1, 0) == 1);
    abort.Abort(absl::CancelledError("tired"));
    HearAll(socket);
    close(socket);
  });
  EXPECT_EQ(outcome, absl::CancelledError("tired"));
}

}  // namespace
}  // namespace troupe
