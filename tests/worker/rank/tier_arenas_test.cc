#include "worker/rank/tier_arenas.h"

#include "gtest/gtest.h"
#include "storage/tier/allocator.h"

namespace troupe {
namespace {

std::vector<TierBudget> Budgets() {
  TierBudget device;
  device.set_tier(DEVICE);
  device.set_bytes(1000);
  TierBudget host;
  host.set_tier(HOST);
  host.set_bytes(10);
  return {device, host};
}

TEST(TierArenas, HasWhatTheWorkerRegistered) {
  HostAllocator allocator;
  const TierArenas arenas(Budgets(), allocator);
  ASSERT_TRUE(arenas.Find(DEVICE).ok());
  EXPECT_EQ((*arenas.Find(DEVICE))->budget(), 1000u);
  EXPECT_EQ((*arenas.Find(HOST))->tier(), "host");
  const absl::Status missing = arenas.Find(NVME).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(missing)) << missing;
  EXPECT_NE(missing.message().find("nvme"), absl::string_view::npos);
}

TEST(TierArenas, CountsWhatIsUsed) {
  HostAllocator allocator;
  const TierArenas arenas(Budgets(), allocator);
  {
    const auto device = (*arenas.Find(DEVICE))->Allocate("parameters", 100);
    const auto host = (*arenas.Find(HOST))->Allocate("parameters", 7);
    ASSERT_TRUE(device.ok() && host.ok());
    EXPECT_EQ(arenas.used(), 107u);
  }
  EXPECT_EQ(arenas.used(), 0u);
}

TEST(TierArenas, RoomOnADiskIsCountedAndIsNoMemory) {
  std::vector<TierBudget> budgets = Budgets();
  budgets.emplace_back().set_tier(NVME);
  budgets.back().set_bytes(int64_t{1} << 50);
  HostAllocator allocator;
  const TierArenas arenas(
      budgets,
      {.device = allocator, .host = allocator, .nvme = {.directory = "/nvme"}});
  EXPECT_EQ(arenas.nvme().directory, "/nvme");
  const auto block =
      (*arenas.Find(NVME))->Allocate("optimizer_moments", size_t{1} << 49);
  ASSERT_TRUE(block.ok()) << block.status();
  EXPECT_EQ(block->data(), nullptr);
  EXPECT_EQ(arenas.used(), size_t{1} << 49);
  const absl::Status full =
      (*arenas.Find(NVME))->Allocate("parameters", size_t{1} << 50).status();
  EXPECT_TRUE(absl::IsResourceExhausted(full)) << full;
  EXPECT_NE(full.message().find("tier nvme: parameters needs"),
            absl::string_view::npos)
      << full;
}

// Counts what it gives out.
class Counted final : public TierAllocator {
 public:
  absl::StatusOr<void*> Allocate(size_t bytes) override {
    given += bytes;
    return host_.Allocate(bytes);
  }
  void Free(void* data, size_t bytes) override { host_.Free(data, bytes); }

  size_t given = 0;

 private:
  HostAllocator host_;
};

TEST(TierArenas, EachTierHasItsMemory) {
  Counted device, host;
  const TierArenas arenas(Budgets(), {.device = device, .host = host});
  ASSERT_TRUE((*arenas.Find(DEVICE))->Allocate("parameters", 100).ok());
  ASSERT_TRUE((*arenas.Find(HOST))->Allocate("snapshot", 7).ok());
  EXPECT_EQ(device.given, 100u);
  EXPECT_EQ(host.given, 7u);
}

}  // namespace
}  // namespace troupe
