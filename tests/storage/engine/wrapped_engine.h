// The machine's disk, in whose way a test puts something.
#ifndef TROUPE_TESTS_STORAGE_ENGINE_WRAPPED_ENGINE_H_
#define TROUPE_TESTS_STORAGE_ENGINE_WRAPPED_ENGINE_H_

#include <memory>
#include <string>
#include <vector>

#include "proto/base/check.h"
#include "storage/engine/engine.h"
#include "storage/engine/make_engine.h"

namespace troupe {

class WrappedEngine : public IoEngine {
 public:
  WrappedEngine() : inner_(MakeIoEngine({.depth = 4, .log = false}).value()) {}

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
    return inner_->Poll(timeout);
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
    CHECK_OK(inner_->Submit(requests));
  }

 private:
  const std::unique_ptr<IoEngine> inner_;
};

}  // namespace troupe

#endif  // TROUPE_TESTS_STORAGE_ENGINE_WRAPPED_ENGINE_H_
