// A thread's way to what a rank has in any tier: whole values between
// neighbouring tiers, as FETCH and EVICT move them, and any bytes between a
// tier and the host's memory, as a state is set and saved, a little of it in
// memory at a time.
//
//   TierPort port(device, &memory, &disk_log);
//   RETURN_IF_ERROR(port.Move(from, to, bytes));
//   RETURN_IF_ERROR(port.Write(moments, host, bytes));
//   RETURN_IF_ERROR(port.Flush());
//
// The nvme tier is reached by an engine of the port's own, made when it is
// first needed.
//
// Thread rule: one thread at a time.
#ifndef TROUPE_WORKER_RANK_TIER_PORT_H_
#define TROUPE_WORKER_RANK_TIER_PORT_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ops/device.h"
#include "storage/engine/engine.h"
#include "storage/spill/spill_queue.h"
#include "storage/spill/spill_window.h"
#include "worker/rank/disk_log.h"
#include "worker/rank/rank_memory.h"
#include "worker/rank/tier_address.h"

namespace troupe {

class TierPort {
 public:
  // Borrows all. `memory`: of the rank; null: nothing is in the nvme tier.
  // `log`: an abort of it ends moves; null: nobody aborts.
  explicit TierPort(Device& device, const RankMemory* memory = nullptr,
                    const DiskLog* log = nullptr)
      : device_(device), memory_(memory), log_(log) {}
  ~TierPort();
  TierPort(const TierPort&) = delete;
  TierPort& operator=(const TierPort&) = delete;

  // A whole value, between neighbouring tiers or within one; between the device
  // and the host it is enqueued on the device. Between the host and nvme both
  // places are aligned to kIoAlignment, with room up to a multiple of it.
  absl::Status Move(const TierAddress& from, const TierAddress& to,
                    int64_t bytes);

  // Any bytes. What a read gives is there after Settle, until when what is
  // written must stay as it is. Nobody else may change what lies around them in
  // the nvme tier (spill_window.h).
  absl::Status Read(const TierAddress& from, int64_t bytes, char* host);
  absl::Status Write(const TierAddress& to, const char* host, int64_t bytes);
  absl::Status Zero(const TierAddress& to, int64_t bytes);
  absl::Status Settle() { return device_.Synchronize(); }
  // Settles; then others find all that was written here, and this port what
  // others write. REQUIRED between its uses of bytes that others change.
  absl::Status Flush();

  // Whether the host's threads may read there without the port.
  bool IsHostMemory(const TierAddress& at) const {
    return at.tier() == HOST ||
           (at.tier() == DEVICE && device_.has_host_memory());
  }

 private:
  absl::StatusOr<SpillQueue*> Queue();
  absl::StatusOr<SpillWindow*> Window();
  // Tells the engine of the memory that moves come from and go to, which locks
  // that: not for those that only set and save.
  void KnowMemory();
  absl::Status ZeroNvme(uint64_t begin, uint64_t end);
  absl::Status CopyWithinNvme(const TierAddress& from, const TierAddress& to,
                              int64_t bytes);

  Device& device_;
  const RankMemory* const memory_;
  const DiskLog* const log_;
  // Null until they are needed.
  std::unique_ptr<IoEngine> engine_;
  std::unique_ptr<SpillQueue> queue_;
  std::unique_ptr<SpillWindow> window_;
  bool knows_memory_ = false;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_RANK_TIER_PORT_H_
