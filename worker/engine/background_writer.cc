#include "worker/engine/background_writer.h"

#include <utility>

#include "proto/base/check.h"

namespace troupe {

BackgroundWriter::BackgroundWriter()
    : thread_({.name = "checkpoint", .capacity = 1},
              [this](Write write) { Run(std::move(write)); }) {}

BackgroundWriter::~BackgroundWriter() = default;

absl::Status BackgroundWriter::AwaitIdle() {
  absl::MutexLock lock(&mutex_);
  const auto idle = [this]()
                        ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return !busy_; };
  mutex_.Await(absl::Condition(&idle));
  return status_;
}

void BackgroundWriter::Start(Write write) {
  {
    absl::MutexLock lock(&mutex_);
    CHECK(!busy_) << "a write was begun during another";
    busy_ = true;
  }
  thread_.Send(std::move(write));
}

absl::Status BackgroundWriter::status() const {
  absl::MutexLock lock(&mutex_);
  return status_;
}

void BackgroundWriter::Run(Write write) {
  const absl::Status status = write();
  absl::MutexLock lock(&mutex_);
  status_.Update(status);
  busy_ = false;
}

}  // namespace troupe
