// A disk that is as slow as a test wants, in a time that is the test's: each
// byte that is written is told of, before its writer hears that it has been
// written. Time passes for one write after another (turns.h): the next one, of
// whatever disk, is told of when this one's writer has come back to its disk.
#ifndef TROUPE_TESTS_FAULTS_SLOW_DISK_H_
#define TROUPE_TESTS_FAULTS_SLOW_DISK_H_

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "proto/base/check.h"
#include "storage/engine/make_engine.h"
#include "tests/faults/turns.h"

namespace troupe {

class SlowDisk final : public IoEngine {
 public:
  // `wrote` is called by the thread that polls, which has the turn. Borrows the
  // turns, which all disks of the same time share.
  SlowDisk(Turns& turns, std::function<void(uint64_t bytes)> wrote)
      : turns_(turns),
        wrote_(std::move(wrote)),
        disk_(MakeIoEngine({.kind = "thread_pool", .log = false}).value()) {}
  ~SlowDisk() override { ComeBack(); }

  absl::string_view name() const override { return "slow"; }
  int depth() const override { return disk_->depth(); }
  int in_flight() const override {
    return disk_->in_flight() + static_cast<int>(done_.size());
  }
  absl::StatusOr<IoFile> Open(const std::string& path, IoMode mode) override {
    ComeBack();
    return disk_->Open(path, mode);
  }
  absl::StatusOr<uint64_t> Size(IoFile file) override {
    return disk_->Size(file);
  }
  // One completion at a time.
  std::vector<IoCompletion> Poll(absl::Duration timeout) override {
    ComeBack();
    if (done_.empty()) {
      for (IoCompletion& done : disk_->Poll(timeout)) {
        done_.push_back(std::move(done));
      }
    }
    if (done_.empty()) return {};
    IoCompletion completion = std::move(done_.front());
    done_.pop_front();
    const auto write = writes_.find(completion.tag);
    if (write != writes_.end()) {
      turns_.Take();
      has_turn_ = true;
      wrote_(write->second);
      writes_.erase(write);
    }
    return {std::move(completion)};
  }
  void Cancel() override { disk_->Cancel(); }
  absl::Status Sync(IoFile file) override {
    ComeBack();
    return disk_->Sync(file);
  }
  absl::Status Close(IoFile file) override {
    ComeBack();
    return disk_->Close(file);
  }

 protected:
  void Start(absl::Span<const IoRequest> requests) override {
    ComeBack();
    for (const IoRequest& request : requests) {
      if (request.kind == IoKind::kWrite) writes_[request.tag] = request.bytes;
    }
    CHECK_OK(disk_->Submit(requests));
  }

 private:
  // The writer has noted what it was told last.
  void ComeBack() {
    if (std::exchange(has_turn_, false)) turns_.GiveBack();
  }

  Turns& turns_;
  const std::function<void(uint64_t)> wrote_;
  const std::unique_ptr<IoEngine> disk_;
  std::map<uint64_t, uint64_t> writes_;  // bytes in flight, by tag
  std::deque<IoCompletion> done_;        // and not told of yet
  bool has_turn_ = false;
};

}  // namespace troupe

#endif  // TROUPE_TESTS_FAULTS_SLOW_DISK_H_
