#include "storage/engine/file_stream.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "proto/base/check.h"
#include "proto/base/crc32c.h"
#include "proto/base/status.h"

namespace troupe {

void FileStream::FreeDeleter::operator()(char* p) const { free(p); }

absl::StatusOr<std::unique_ptr<FileStream>> FileStream::Create(
    IoEngine& engine, const std::string& path,
    const FileStreamOptions& options) {
  CHECK_EQ(engine.in_flight(), 0);
  CHECK(options.buffer_bytes > 0 && options.buffers > 0);
  CHECK_EQ(options.buffer_bytes % kIoAlignment, 0u);
  ASSIGN_OR_RETURN(const IoFile file, engine.Open(path, IoMode::kCreate));
  return std::unique_ptr<FileStream>(new FileStream(engine, file, options));
}

FileStream::FileStream(IoEngine& engine, IoFile file,
                       const FileStreamOptions& options)
    : engine_(engine), file_(file), options_(options) {
  const int buffers = std::min(options.buffers, engine.depth());
  for (int i = 0; i < buffers; ++i) {
    buffers_.emplace_back(
        static_cast<char*>(aligned_alloc(kIoAlignment, options.buffer_bytes)));
    CHECK(buffers_.back() != nullptr);
    free_.push_back(i);
  }
}

FileStream::~FileStream() {
  while (engine_.in_flight() > 0) Collect();
  if (!closed_) engine_.Close(file_).IgnoreError();
}

absl::Status FileStream::Append(absl::string_view bytes) {
  CHECK(!closed_);
  summary_.crc32c = ExtendCrc32c(summary_.crc32c, bytes);
  summary_.bytes += bytes.size();
  while (!bytes.empty()) {
    RETURN_IF_ERROR(AwaitBuffer());
    const size_t n = std::min(bytes.size(), options_.buffer_bytes - filled_);
    memcpy(buffers_[current_].get() + filled_, bytes.data(), n);
    filled_ += n;
    bytes.remove_prefix(n);
    if (filled_ == options_.buffer_bytes) RETURN_IF_ERROR(Flush());
  }
  return error_;
}

absl::StatusOr<FileSummary> FileStream::Finish() {
  CHECK(!closed_);
  if (filled_ > 0) RETURN_IF_ERROR(Flush());
  while (engine_.in_flight() > 0) Collect();
  RETURN_IF_ERROR(error_);
  error_ = engine_.Sync(file_);
  RETURN_IF_ERROR(error_);
  closed_ = true;
  RETURN_IF_ERROR(engine_.Close(file_));
  return summary_;
}

absl::Status FileStream::Flush() {
  RETURN_IF_ERROR(error_);
  RETURN_IF_ERROR(engine_.Submit({.kind = IoKind::kWrite,
                                  .file = file_,
                                  .offset = offset_,
                                  .data = buffers_[current_].get(),
                                  .bytes = filled_,
                                  .tag = static_cast<uint64_t>(current_)}));
  offset_ += filled_;
  filled_ = 0;
  current_ = -1;
  return absl::OkStatus();
}

absl::Status FileStream::AwaitBuffer() {
  if (current_ < 0) {
    while (free_.empty()) Collect();
    current_ = free_.back();
    free_.pop_back();
  }
  return error_;
}

void FileStream::Collect() {
  for (const IoCompletion& done : engine_.Poll(absl::InfiniteDuration())) {
    free_.push_back(static_cast<int>(done.tag));
    error_.Update(done.status);
  }
}

}  // namespace troupe
