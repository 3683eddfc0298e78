#include "worker/calibrate/host_links.h"

#include <array>
#include <memory>
#include <thread>

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "worker/collective/create_communicator.h"
#include "worker/collective/key_value_store.h"

namespace troupe {
namespace {

// Four ranks on threads, two to a host.
std::array<absl::StatusOr<HostLinks>, 4> Measure(
    const HostLinksOptions& options) {
  InMemoryStore store;
  const RealClock clock;
  std::array<absl::StatusOr<HostLinks>, 4> links;
  std::array<std::thread, 4> ranks;
  for (int rank = 0; rank < 4; ++rank) {
    ranks[rank] = std::thread([&, rank] {
      auto communicator = CreateCommunicator(
          "gloo", {.group = {.name = "links", .ranks = {0, 1, 2, 3}},
                   .rank = rank,
                   .store = &store});
      links[rank] = communicator.ok()
                        ? MeasureHostLinks(**communicator, clock, options)
                        : communicator.status();
    });
  }
  for (std::thread& rank : ranks) rank.join();
  return links;
}

TEST(HostLinks, OnePairMeasuresAloneAndAllTogether) {
  const auto links =
      Measure({.bytes_max = 1 << 20, .time_max = absl::Seconds(60)});
  for (int rank = 0; rank < 4; ++rank) {
    ASSERT_TRUE(links[rank].ok()) << links[rank].status();
    EXPECT_GT(links[rank]->together, 0);
    const LinkRate& alone = links[rank]->alone;
    EXPECT_EQ(alone.bytes_per_second() > 0, rank % 2 == 0);
    EXPECT_EQ(alone.latency_us() > 0, rank % 2 == 0);
  }
}

TEST(HostLinks, FailsWhenItsTimeIsOver) {
  const auto links = Measure({.bytes_max = 1 << 20, .time_max = {}});
  for (const auto& link : links) EXPECT_FALSE(link.ok());
}

TEST(HostLinks, APeerThatJoinsAndHangsIsNoHang) {
  InMemoryStore store;
  const auto join = [&store](int rank) {
    return CreateCommunicator(
        "gloo", {.group = {.name = "links", .ranks = {0, 1}},
                 .rank = rank,
                 .store = &store});
  };
  absl::Notification over;
  std::thread hangs([&] {
    const auto communicator = join(1);
    EXPECT_TRUE(communicator.ok()) << communicator.status();
    over.WaitForNotification();
  });
  const auto communicator = join(0);
  absl::Status measured = communicator.status();
  if (communicator.ok()) {
    const RealClock clock;
    measured = MeasureHostLinks(
                   **communicator, clock,
                   {.bytes_max = 1 << 20, .time_max = absl::Milliseconds(300)})
                   .status();
  }
  EXPECT_TRUE(absl::IsDeadlineExceeded(measured) ||
              absl::IsUnavailable(measured))
      << measured;
  over.Notify();
  hangs.join();
}

}  // namespace
}  // namespace troupe
