// A disk of the machine's that fails once it has done so many requests: what a
// rank meets in the midst of a step.
#ifndef TROUPE_TESTS_STORAGE_ENGINE_FAILING_ENGINE_H_
#define TROUPE_TESTS_STORAGE_ENGINE_FAILING_ENGINE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "storage/disk/errno_status.h"
#include "storage/engine/engine.h"
#include "storage/engine/make_engine.h"

namespace troupe {

// Shared by the engines of one disk.
struct DiskFailure {
  IoKind kind = IoKind::kWrite;
  int error = 0;              // errno
  std::atomic<int> left{-1};  // so many succeed; below 0: all
};

class FailingEngine final : public IoEngine {
 public:
  explicit FailingEngine(std::shared_ptr<DiskFailure> failure)
      : inner_(MakeIoEngine({.depth = 4, .log = false}).value()),
        failure_(std::move(failure)) {}

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
    std::vector<IoCompletion> done = inner_->Poll(timeout);
    for (IoCompletion& completion : done) {
      if (failing_.erase(completion.tag) == 0) continue;
      completion.status = ErrnoStatus(failure_->error, "the test's disk");
    }
    return done;
  }
  void Cancel() override { inner_->Cancel(); }
  absl::Status RegisterMemory(char* data, size_t bytes) override {
    return inner_->RegisterMemory(data, bytes);
  }
  void ForgetMemory(const char* data) override { inner_->ForgetMemory(data); }
  absl::Status Sync(IoFile file) override { return inner_->Sync(file); }
  absl::Status Close(IoFile file) override { return inner_->Close(file); }

 protected:
  void Start(absl::Span<const IoRequest> requests) override {
    for (const IoRequest& request : requests) {
      if (request.kind != failure_->kind || failure_->left < 0) continue;
      if (failure_->left.fetch_sub(1) == 0) failing_.insert(request.tag);
    }
    CHECK_OK(inner_->Submit(requests));
  }

 private:
  const std::unique_ptr<IoEngine> inner_;
  const std::shared_ptr<DiskFailure> failure_;
  std::set<uint64_t> failing_;  // tags
};

}  // namespace troupe

#endif  // TROUPE_TESTS_STORAGE_ENGINE_FAILING_ENGINE_H_
