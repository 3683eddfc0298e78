// Where a value of a rank lies: in memory of the device or of the host, or at
// an offset of the rank's spill file.
#ifndef TROUPE_WORKER_RANK_TIER_ADDRESS_H_
#define TROUPE_WORKER_RANK_TIER_ADDRESS_H_

#include <cstdint>

#include "proto/base/check.h"
#include "proto/cluster.pb.h"

namespace troupe {

class TierAddress {
 public:
  // Nowhere: there is no such value.
  TierAddress() = default;
  // Of the device's memory; null: nowhere.
  TierAddress(char* memory)  // NOLINT(google-explicit-constructor): a pointer
      : memory_(memory) {}   // is an address
  static TierAddress InHost(char* memory) { return {HOST, memory, 0}; }
  static TierAddress InNvme(uint64_t offset) { return {NVME, nullptr, offset}; }

  Tier tier() const { return tier_; }
  explicit operator bool() const { return tier_ == NVME || memory_ != nullptr; }

  // REQUIRES that it is not in the nvme tier, whose values no kernel reaches.
  char* memory() const {
    CHECK_NE(tier_, NVME) << "a value in the nvme tier is used in its place";
    return memory_;
  }
  // REQUIRES the nvme tier.
  uint64_t offset() const {
    CHECK_EQ(tier_, NVME);
    return offset_;
  }

  TierAddress operator+(int64_t bytes) const {
    return tier_ == NVME ? InNvme(offset_ + bytes)
                         : TierAddress(tier_, memory_ + bytes, 0);
  }
  friend bool operator==(const TierAddress& a, const TierAddress& b) {
    return a.tier_ == b.tier_ && a.memory_ == b.memory_ &&
           a.offset_ == b.offset_;
  }

 private:
  TierAddress(Tier tier, char* memory, uint64_t offset)
      : tier_(tier), memory_(memory), offset_(offset) {}

  Tier tier_ = DEVICE;
  char* memory_ = nullptr;
  uint64_t offset_ = 0;  // NVME
};

}  // namespace troupe

#endif  // TROUPE_WORKER_RANK_TIER_ADDRESS_H_
