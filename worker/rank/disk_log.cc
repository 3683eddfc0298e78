#include "worker/rank/disk_log.h"

#include "proto/base/check.h"

namespace troupe {

void DiskLog::Begin(const Work& work) {
  absl::MutexLock lock(&mutex_);
  CHECK(!work_.has_value()) << "two things are read or written at once";
  work_ = work;
  begin_ns_ = clock_.MonotonicNanos();
  bytes_ = 0;
}

absl::Status DiskLog::Add(uint64_t bytes) {
  absl::MutexLock lock(&mutex_);
  bytes_ += static_cast<int64_t>(bytes);
  return aborted_;
}

void DiskLog::End() {
  absl::MutexLock lock(&mutex_);
  work_.reset();
}

void DiskLog::Abort(const absl::Status& why) {
  CHECK(!why.ok()) << "an abort needs a reason";
  absl::MutexLock lock(&mutex_);
  if (aborted_.ok()) aborted_ = why;
}

absl::Status DiskLog::aborted() const {
  absl::MutexLock lock(&mutex_);
  return aborted_;
}

absl::optional<DiskProgress> DiskLog::Progress() const {
  absl::MutexLock lock(&mutex_);
  if (!work_.has_value()) return absl::nullopt;
  DiskProgress progress;
  progress.set_writes(work_->writes);
  progress.set_step(work_->step);
  progress.set_bytes(bytes_);
  progress.set_bytes_total(work_->bytes);
  progress.set_seconds((clock_.MonotonicNanos() - begin_ns_) * 1e-9);
  return progress;
}

}  // namespace troupe
