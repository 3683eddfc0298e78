#include "worker/engine/background_writer.h"

#include <atomic>
#include <memory>

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"

namespace troupe {
namespace {

TEST(BackgroundWriter, TheCallerGoesOnWhileAWriteIsBlocked) {
  absl::Notification goes_on;
  std::atomic<bool> written = false;
  BackgroundWriter writer;
  EXPECT_TRUE(writer.AwaitIdle().ok());
  writer.Start([&] {
    goes_on.WaitForNotification();
    written = true;
    return absl::OkStatus();
  });
  EXPECT_TRUE(writer.status().ok());
  EXPECT_FALSE(written);
  goes_on.Notify();
  EXPECT_TRUE(writer.AwaitIdle().ok());
  EXPECT_TRUE(written);
}

TEST(BackgroundWriter, TheNextWriteWaitsForTheOneBefore) {
  int copy = 0;  // what a write reads, and must not change meanwhile
  BackgroundWriter writer;
  for (int step = 1; step <= 100; ++step) {
    ASSERT_TRUE(writer.AwaitIdle().ok());
    copy = step;
    writer.Start([&copy, step] {
      EXPECT_EQ(copy, step);
      return absl::OkStatus();
    });
  }
}

TEST(BackgroundWriter, TheFirstErrorStays) {
  BackgroundWriter writer;
  writer.Start([] { return absl::ResourceExhaustedError("the disk is full"); });
  EXPECT_EQ(writer.AwaitIdle(),
            absl::ResourceExhaustedError("the disk is full"));
  writer.Start([] { return absl::UnavailableError("something else"); });
  EXPECT_EQ(writer.AwaitIdle(),
            absl::ResourceExhaustedError("the disk is full"));
  EXPECT_EQ(writer.status(), absl::ResourceExhaustedError("the disk is full"));
}

TEST(BackgroundWriter, IsNotDestroyedBeforeItsWriteEnds) {
  bool written = false;
  {
    auto writer = std::make_unique<BackgroundWriter>();
    writer->Start([&written] {
      written = true;
      return absl::OkStatus();
    });
  }
  EXPECT_TRUE(written);
}

}  // namespace
}  // namespace troupe
