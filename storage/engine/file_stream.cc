#include "storage/engine/file_stream.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "proto/base/check.h"
#include "proto/base/crc32c.h"
#include "proto/base/status.h"
#include "proto/base/steady_time.h"

namespace troupe {
namespace {

// What is synced at a time, and how long that is to take. However fast a cache
// takes the first of it, the disk behind it may do 1 MB/s, for which deadlines
// have patience: so there is a most, which costs a disk of 150 MB/s that needs
// 15 ms for a sync some 7 %.
constexpr uint64_t kSyncBytesMin = uint64_t{8} << 20;
constexpr uint64_t kSyncBytesMax = uint64_t{32} << 20;
constexpr absl::Duration kSyncTime = absl::Seconds(2);

}  // namespace

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
    : engine_(engine),
      file_(file),
      options_(options),
      sync_bytes_(kSyncBytesMin) {
  const int buffers = std::min(options.buffers, engine.depth());
  in_flight_bytes_.resize(buffers);
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
  AddToBlocks(bytes);
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

void FileStream::AddToBlocks(absl::string_view bytes) {
  while (options_.block_bytes > 0 && !bytes.empty()) {
    const absl::string_view part =
        bytes.substr(0, options_.block_bytes - in_block_);
    block_crc32c_ = ExtendCrc32c(block_crc32c_, part);
    in_block_ += part.size();
    bytes.remove_prefix(part.size());
    if (in_block_ < options_.block_bytes) return;
    summary_.blocks.push_back(block_crc32c_);
    in_block_ = block_crc32c_ = 0;
  }
}

absl::StatusOr<FileSummary> FileStream::Finish() {
  CHECK(!closed_);
  if (in_block_ > 0) summary_.blocks.push_back(block_crc32c_);
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
  in_flight_bytes_[current_] = filled_;
  offset_ += filled_;
  filled_ = 0;
  current_ = -1;
  return SyncWhereDue();
}

absl::Status FileStream::SyncWhereDue() {
  if (offset_ - synced_ < sync_bytes_) return absl::OkStatus();
  while (engine_.in_flight() > 0) Collect();
  RETURN_IF_ERROR(error_);
  const absl::Time begin = SteadyNow();
  error_ = engine_.Sync(file_);
  const absl::Duration took =
      std::max(SteadyNow() - begin, absl::Microseconds(1));
  const double in_time = absl::FDivDuration(kSyncTime, took) *
                         static_cast<double>(offset_ - synced_);
  const uint64_t most = std::min(kSyncBytesMax, 2 * sync_bytes_);
  sync_bytes_ = in_time >= static_cast<double>(most)
                    ? most
                    : std::max(kSyncBytesMin, static_cast<uint64_t>(in_time));
  synced_ = offset_;
  return error_;
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
    if (error_.ok() && options_.moved) {
      error_ = options_.moved(in_flight_bytes_[done.tag]);
    }
  }
}

}  // namespace troupe
