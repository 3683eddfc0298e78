// A disk of the machine's that answers nobody from some moment on, until it is
// told to end: what a rank that is to stop waits for.
#ifndef TROUPE_TESTS_STORAGE_ENGINE_STUCK_ENGINE_H_
#define TROUPE_TESTS_STORAGE_ENGINE_STUCK_ENGINE_H_

#include <atomic>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "storage/engine/engine.h"
#include "tests/storage/engine/wrapped_engine.h"

namespace troupe {

// Shared by the engines of one disk. Those that have been told to end answer.
struct StuckDisk {
  std::atomic<bool> is_stuck{false};
  // Called by an engine that is asked and does not answer; may be empty. Set
  // before the disk is stuck.
  std::function<void()> on_silence;
  std::atomic<int> cancelled{0};  // requests that were told to end
};

class StuckEngine final : public WrappedEngine {
 public:
  explicit StuckEngine(std::shared_ptr<StuckDisk> disk)
      : disk_(std::move(disk)) {}

  std::vector<IoCompletion> Poll(absl::Duration timeout) override {
    const bool silent = disk_->is_stuck && !ends_ && in_flight() > 0 &&
                        asked_in_vain_ < kAskedMax;
    if (!silent) return WrappedEngine::Poll(timeout);
    ++asked_in_vain_;
    if (disk_->on_silence) disk_->on_silence();
    return {};
  }
  void Cancel() override {
    if (disk_->is_stuck) {
      ends_ = true;
      disk_->cancelled += in_flight();
    }
    WrappedEngine::Cancel();
  }

 private:
  // Then it answers all the same: code that never tells it to end fails a test,
  // and does not hang it.
  static constexpr int kAskedMax = 1000;

  const std::shared_ptr<StuckDisk> disk_;
  bool ends_ = false;
  int asked_in_vain_ = 0;
};

}  // namespace troupe

#endif  // TROUPE_TESTS_STORAGE_ENGINE_STUCK_ENGINE_H_
