#include "worker/rank/tier_port.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "proto/base/check.h"
#include "storage/spill/spill_file.h"
#include "tests/equivalence/small_job.h"
#include "tests/storage/engine/stuck_engine.h"
#include "tests/worker/rank/small_rank.h"

namespace troupe {
namespace {

// A rank whose moments rest in the nvme tier, and where those of a unit are.
class TierPortTest : public testing::Test {
 protected:
  TierAddress Moments(int unit) const {
    return rank_.state().memory.At(
        *FindResident(rank_.state().role(), Buffer::OPTIMIZER_STATE, unit), 1);
  }
  static char* NewBlock() {
    return static_cast<char*>(HostAllocator().Allocate(kBytes).value());
  }

  static constexpr int64_t kBytes = 8192;
  const std::shared_ptr<StuckDisk> disk_ = std::make_shared<StuckDisk>();
  mutable SmallRank rank_{
      SmallJob(),
      {.change = RestIn(NVME, {"optimizer_moments"}),
       .new_engine = [this] { return std::make_unique<StuckEngine>(disk_); }}};
  TierPort port_{rank_.state().device, &rank_.state().memory, &rank_.disk()};
};

TEST_F(TierPortTest, MovesBetweenNeighbours) {
  char* const one = NewBlock();
  char* const other = NewBlock();
  std::string device(5000, 'd');
  // From the device to the disk and back again, and a little past the value:
  // whole blocks of the disk.
  std::memset(one, 'a', kBytes);
  ASSERT_TRUE(port_.Move(device.data(), TierAddress::InHost(one), 5000).ok());
  ASSERT_TRUE(port_.Move(TierAddress::InHost(one), Moments(1), 5000).ok());
  ASSERT_TRUE(port_.Move(Moments(1), TierAddress::InHost(other), 5000).ok());
  EXPECT_EQ(std::string(other, kBytes),
            device + std::string(kBytes - 5000, 'a'));
  std::string back(5000, 'x');
  ASSERT_TRUE(port_.Move(TierAddress::InHost(other), back.data(), 5000).ok());
  ASSERT_TRUE(port_.Flush().ok());
  EXPECT_EQ(back, device);
  HostAllocator().Free(one, kBytes);
  HostAllocator().Free(other, kBytes);
}

TEST_F(TierPortTest, AnotherPortFindsWhatWasFlushed) {
  const std::string text = "any bytes, anywhere";
  ASSERT_TRUE(port_.Write(Moments(2) + 777, text.data(), text.size()).ok());
  ASSERT_TRUE(port_.Flush().ok());
  TierPort other(rank_.state().device, &rank_.state().memory);
  std::string found(text.size(), 'x');
  ASSERT_TRUE(other.Read(Moments(2) + 777, found.size(), found.data()).ok());
  EXPECT_EQ(found, text);
  ASSERT_TRUE(other.Zero(Moments(2) + 780, 4).ok());
  ASSERT_TRUE(other.Read(Moments(2) + 777, found.size(), found.data()).ok());
  EXPECT_EQ(found, "any" + std::string(4, '\0') + text.substr(7));
}

TEST_F(TierPortTest, AnAbortEndsMoves) {
  char* const block = NewBlock();
  ASSERT_TRUE(port_.Move(Moments(1), TierAddress::InHost(block), 4096).ok());
  disk_->on_silence = [this] {
    rank_.disk().Abort(absl::AbortedError("a peer is gone"));
  };
  disk_->is_stuck = true;
  EXPECT_EQ(port_.Move(Moments(1), TierAddress::InHost(block), 4096),
            absl::AbortedError("a peer is gone"));
  EXPECT_EQ(disk_->cancelled, 1);
  HostAllocator().Free(block, kBytes);
}

TEST_F(TierPortTest, AForeignChangeIsNamed) {
  std::string path;
  for (const auto& entry :
       std::filesystem::directory_iterator(rank_.nvme().path())) {
    path = entry.path();
  }
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  std::string first;
  std::getline(file, first);
  EXPECT_EQ(first.find("troupe spill file 1: cluster small, job "), 0u)
      << first;
  file.seekp(kSpillHeaderBytes + Moments(3).offset());
  file << "changed" << std::flush;
  ASSERT_TRUE(file.good());
  char* const block = NewBlock();
  const absl::Status status =
      port_.Move(Moments(3), TierAddress::InHost(block), 4096);
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_NE(status.message().find(path), absl::string_view::npos) << status;
  HostAllocator().Free(block, kBytes);
}

}  // namespace
}  // namespace troupe
