// A disk that is as slow as a test wants, in a time that is the test's: each
// byte that is written is told of, before whoever wrote it hears that it has
// been.
#ifndef TROUPE_TESTS_FAULTS_SLOW_DISK_H_
#define TROUPE_TESTS_FAULTS_SLOW_DISK_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "proto/base/check.h"
#include "storage/engine/make_engine.h"

namespace troupe {

class SlowDisk final : public IoEngine {
 public:
  // Called by the thread that polls.
  explicit SlowDisk(std::function<void(uint64_t bytes)> wrote)
      : wrote_(std::move(wrote)),
        disk_(MakeIoEngine({.kind = "thread_pool", .log = false}).value()) {}

  absl::string_view name() const override { return "slow"; }
  int depth() const override { return disk_->depth(); }
  int in_flight() const override { return disk_->in_flight(); }
  absl::StatusOr<IoFile> Open(const std::string& path, IoMode mode) override {
    return disk_->Open(path, mode);
  }
  absl::StatusOr<uint64_t> Size(IoFile file) override {
    return disk_->Size(file);
  }
  std::vector<IoCompletion> Poll(absl::Duration timeout) override {
    std::vector<IoCompletion> done = disk_->Poll(timeout);
    for (const IoCompletion& completion : done) {
      const auto write = writes_.find(completion.tag);
      if (write == writes_.end()) continue;
      wrote_(write->second);
      writes_.erase(write);
    }
    return done;
  }
  void Cancel() override { disk_->Cancel(); }
  absl::Status Sync(IoFile file) override { return disk_->Sync(file); }
  absl::Status Close(IoFile file) override { return disk_->Close(file); }

 protected:
  void Start(absl::Span<const IoRequest> requests) override {
    for (const IoRequest& request : requests) {
      if (request.kind == IoKind::kWrite) writes_[request.tag] = request.bytes;
    }
    CHECK_OK(disk_->Submit(requests));
  }

 private:
  const std::function<void(uint64_t)> wrote_;
  const std::unique_ptr<IoEngine> disk_;
  std::map<uint64_t, uint64_t> writes_;  // bytes in flight, by tag
};

}  // namespace troupe

#endif  // TROUPE_TESTS_FAULTS_SLOW_DISK_H_
