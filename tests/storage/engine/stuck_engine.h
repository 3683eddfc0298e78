// A disk of the machine's that answers nobody from some moment on, until it is
// told to end: what a rank that is to stop waits for.
#ifndef TROUPE_TESTS_STORAGE_ENGINE_STUCK_ENGINE_H_
#define TROUPE_TESTS_STORAGE_ENGINE_STUCK_ENGINE_H_

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "proto/base/check.h"
#include "storage/engine/engine.h"
#include "storage/engine/make_engine.h"

namespace troupe {

// Shared by the engines of one disk. Those that have been told to end answer.
struct StuckDisk {
  std::atomic<bool> is_stuck{false};
  // Called by an engine that is asked and does not answer; may be empty. Set
  // before the disk is stuck.
  std::function<void()> on_silence;
  std::atomic<int> cancelled{0};  // requests that were told to end
};

class StuckEngine final : public IoEngine {
 public:
  explicit StuckEngine(std::shared_ptr<StuckDisk> disk)
      : inner_(MakeIoEngine({.depth = 4, .log = false}).value()),
        disk_(std::move(disk)) {}

  absl::string_view name() const override { return inner_->name(); }
  int depth() const override { return inner_->depth(); }
  int in_flight() const override { return inner_->in_flight(); }
  absl::StatusOr<IoFile> Open(const std::string& path, IoMode mode) override {
    return inner_->Open(path, mode);
  }
  absl::StatusOr<uint64_t> Size(IoFile file) override {
    return inner_->Size(file);
  }
  std::vector<IoCompletion> Poll(absl::Duration timeout) override {
    const bool silent = disk_->is_stuck && !ends_ && in_flight() > 0 &&
                        asked_in_vain_ < kAskedMax;
    if (!silent) return inner_->Poll(timeout);
    ++asked_in_vain_;
    if (disk_->on_silence) disk_->on_silence();
    return {};
  }
  void Cancel() override {
    if (disk_->is_stuck) {
      ends_ = true;
      disk_->cancelled += in_flight();
    }
    inner_->Cancel();
  }
  absl::Status RegisterMemory(char* data, size_t bytes) override {
    return inner_->RegisterMemory(data, bytes);
  }
  void ForgetMemory(const char* data) override { inner_->ForgetMemory(data); }
  absl::Status Sync(IoFile file) override { return inner_->Sync(file); }
  absl::Status Close(IoFile file) override { return inner_->Close(file); }

 protected:
  void Start(absl::Span<const IoRequest> requests) override {
    CHECK_OK(inner_->Submit(requests));
  }

 private:
  // Then it answers all the same: who never tells it to end fails a test, and
  // does not hang it.
  static constexpr int kAskedMax = 1000;

  const std::unique_ptr<IoEngine> inner_;
  const std::shared_ptr<StuckDisk> disk_;
  bool ends_ = false;
  int asked_in_vain_ = 0;
};

}  // namespace troupe

#endif  // TROUPE_TESTS_STORAGE_ENGINE_STUCK_ENGINE_H_
