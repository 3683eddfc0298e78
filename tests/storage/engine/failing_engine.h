// A disk of the machine's that fails once it has done a number of requests, or
// as long as it is told to: what a rank meets in the midst of a step.
#ifndef TROUPE_TESTS_STORAGE_ENGINE_FAILING_ENGINE_H_
#define TROUPE_TESTS_STORAGE_ENGINE_FAILING_ENGINE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "storage/disk/errno_status.h"
#include "storage/engine/engine.h"
#include "tests/storage/engine/wrapped_engine.h"

namespace troupe {

// Shared by the engines of one disk.
struct DiskFailure {
  IoKind kind = IoKind::kWrite;
  int error = 0;            // errno
  absl::Status other = {};  // in its place: of something else than a disk
  std::atomic<int> left{
      -1};  // this number succeed, then one fails; below 0: all do
  std::atomic<bool> lasts{false};  // all fail
};

class FailingEngine final : public WrappedEngine {
 public:
  explicit FailingEngine(std::shared_ptr<DiskFailure> failure)
      : failure_(std::move(failure)) {}

  std::vector<IoCompletion> Poll(absl::Duration timeout) override {
    std::vector<IoCompletion> done = WrappedEngine::Poll(timeout);
    for (IoCompletion& completion : done) {
      if (failing_.erase(completion.tag) == 0) continue;
      completion.status = failure_->other.ok()
                              ? ErrnoStatus(failure_->error, "the test's disk")
                              : failure_->other;
    }
    return done;
  }

 protected:
  void Start(absl::Span<const IoRequest> requests) override {
    for (const IoRequest& request : requests) {
      if (request.kind != failure_->kind) continue;
      const bool is_next =
          failure_->left >= 0 && failure_->left.fetch_sub(1) == 0;
      if (is_next || failure_->lasts) failing_.insert(request.tag);
    }
    WrappedEngine::Start(requests);
  }

 private:
  const std::shared_ptr<DiskFailure> failure_;
  std::set<uint64_t> failing_;  // tags
};

}  // namespace troupe

#endif  // TROUPE_TESTS_STORAGE_ENGINE_FAILING_ENGINE_H_
