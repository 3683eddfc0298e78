#include "worker/collective/gloo/mesh.h"

#include <sys/resource.h>

#include <functional>
#include <stdexcept>
#include <vector>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "proto/base/steady_time.h"
#include "tests/worker/collective/gloo/counting_store.h"
#include "tests/worker/collective/gloo/socket_address.h"
#include "tests/worker/collective/ranks.h"

namespace troupe {
namespace {

using Mesh = decltype(GlooMesh::Connect(CommunicatorSeat()));

// All keep their mesh until the last one has joined: one that leaves early
// closes connections that its peers are still making.
std::vector<Mesh> ConnectAll(int ranks,
                             const std::function<CommunicatorSeat(int)>& seat) {
  std::vector<Mesh> meshes;
  for (int i = 0; i < ranks; ++i) meshes.push_back(absl::UnknownError(""));
  OnThreads(ranks,
            [&](int index) { meshes[index] = GlooMesh::Connect(seat(index)); });
  return meshes;
}

TEST(MeshTest, ConnectsEveryPair) {
  for (int ranks = 2; ranks <= 6; ++ranks) {
    InMemoryStore store;
    const std::vector<Mesh> meshes = ConnectAll(
        ranks, [&](int index) { return TestSeat(ranks, index, &store); });
    for (int index = 0; index < ranks; ++index) {
      const Mesh& mesh = meshes[index];
      ASSERT_TRUE(mesh.ok()) << mesh.status();
      EXPECT_EQ((*mesh)->rank, index);
      EXPECT_EQ((*mesh)->size, ranks);
    }
  }
}

// What the last member moves through the store to join.
int64_t BytesOfTheLast(int ranks) {
  InMemoryStore store;
  std::vector<CountingStore> views(ranks, CountingStore(store));
  const std::vector<Mesh> meshes = ConnectAll(
      ranks, [&](int index) { return TestSeat(ranks, index, &views[index]); });
  for (const Mesh& mesh : meshes) EXPECT_TRUE(mesh.ok()) << mesh.status();
  return views.back().bytes_set + views.back().bytes_fetched;
}

TEST(MeshTest, AMemberMovesAFewBytesForEachPeer) {
  const int64_t few = BytesOfTheLast(4);
  const int64_t many = BytesOfTheLast(12);
  EXPECT_LE(many - few, 8 * 40) << few << " of 4 and " << many << " of 12";
}

TEST(MeshTest, ListensOnTheInterfaceThatIsAskedFor) {
  InMemoryStore store;
  const std::vector<Mesh> meshes = ConnectAll(2, [&](int index) {
    CommunicatorSeat seat = TestSeat(2, index, &store);
    seat.interface = "lo";
    return seat;
  });
  for (const Mesh& mesh : meshes) EXPECT_TRUE(mesh.ok()) << mesh.status();
}

TEST(MeshTest, RefusesAnAddressThatIsNotHere) {
  InMemoryStore store;
  CommunicatorSeat seat = TestSeat(2, 0, &store);
  seat.host = "192.0.2.1";  // reserved for documentation
  absl::Status status = GlooMesh::Connect(seat).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "host 192.0.2.1"));
  seat.interface = "nonexistent0";
  status = GlooMesh::Connect(seat).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "interface nonexistent0"));
}

TEST(MeshTest, NamesTheRankThatDoesNotCome) {
  InMemoryStore store;
  CommunicatorSeat seat = TestSeat(2, 0, &store);
  seat.timeout = absl::Milliseconds(50);
  const absl::Status status = GlooMesh::Connect(seat).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "rank 10 did not come"));
}

// It published its addresses and died: nobody listens there any more.
TEST(MeshTest, NamesTheRankThatCannotBeReached) {
  InMemoryStore store;
  OnThreads(2, [&](int index) {
    const CommunicatorSeat seat = TestSeat(2, index, &store);
    if (index == 1) {
      const ListeningSockets nowhere = {SocketAddress("127.0.0.1", 1), {}};
      EXPECT_TRUE(
          Introduce(seat, nowhere, SteadyNow() + absl::Minutes(1)).ok());
      return;
    }
    // The higher address dials.
    const absl::Status status = GlooMesh::Connect(seat).status();
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    EXPECT_TRUE(
        absl::StrContains(status.message(), "rank 10 cannot be reached"));
  });
}

TEST(MeshTest, SaysThatItMayNotOpenSoManyFiles) {
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit few = {.rlim_cur = 100, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  InMemoryStore store;
  const absl::Status status =
      GlooMesh::Connect(TestSeat(1024, 5, &store)).status();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "1023 connections"));
  EXPECT_TRUE(absl::StrContains(status.message(), " of 100 are open"));
}

TEST(MeshTest, ExceptionsBecomeErrors) {
  EXPECT_TRUE(CatchGloo([] {}).ok());
  const absl::Status status =
      CatchGloo([] { throw std::runtime_error("why"); });
  EXPECT_EQ(status, absl::UnavailableError("why"));
}

}  // namespace
}  // namespace troupe
