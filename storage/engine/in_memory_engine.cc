#include "storage/engine/in_memory_engine.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/philox.h"
#include "storage/disk/errno_status.h"

namespace troupe {

InMemoryEngine::InMemoryEngine(int depth, InMemoryFaults faults)
    : depth_(depth), faults_(std::move(faults)) {
  CHECK_GE(depth, 1);
}

const std::string& InMemoryEngine::Content(const std::string& path) const {
  const auto it = contents_.find(path);
  CHECK(it != contents_.end()) << path;
  return it->second;
}

std::string& InMemoryEngine::Content(const std::string& path) {
  const auto it = contents_.find(path);
  CHECK(it != contents_.end()) << path;
  return it->second;
}

absl::StatusOr<IoFile> InMemoryEngine::Open(const std::string& path,
                                            IoMode mode) {
  const bool exists = contents_.count(path) > 0;
  const bool makes = mode == IoMode::kCreate || mode == IoMode::kReadWrite;
  if (!exists && !makes) {
    return ErrnoStatus(ENOENT, absl::StrCat(path, ": open"));
  }
  if (mode == IoMode::kCreate || !exists) contents_[path].clear();
  const int id = next_id_++;
  open_.emplace(id, OpenFile{path, mode});
  return IoFile{id};
}

const InMemoryEngine::OpenFile& InMemoryEngine::Find(IoFile file) const {
  const auto it = open_.find(file.id);
  CHECK(it != open_.end()) << "file " << file.id << " is not open";
  return it->second;
}

absl::StatusOr<uint64_t> InMemoryEngine::Size(IoFile file) {
  return contents_[Find(file).path].size();
}

void InMemoryEngine::Start(absl::Span<const IoRequest> requests) {
  for (const IoRequest& request : requests) {
    Find(request.file);
    queue_.push_back(request);
  }
}

void InMemoryEngine::Cancel() {
  for (const IoRequest& request : std::exchange(queue_, {})) {
    FileTransfer transfer(request, Find(request.file).path);
    transfer.Cancel();
    transfer.Advance(-ECANCELED, false);
    cancelled_.push_back({request.tag, transfer.status()});
  }
}

std::vector<IoCompletion> InMemoryEngine::Poll(absl::Duration timeout) {
  std::vector<IoCompletion> done = std::exchange(cancelled_, {});
  if (!done.empty()) return done;
  if (faults_.shuffle_seed == 0) {
    for (const IoRequest& request : std::exchange(queue_, {})) {
      done.push_back(Run(request));
    }
    return done;
  }
  if (queue_.empty()) return done;
  const uint32_t drawn = PhiloxUint32({.seed = faults_.shuffle_seed}, polls_++);
  const auto chosen = queue_.begin() + drawn % queue_.size();
  const IoRequest request = *chosen;
  queue_.erase(chosen);
  done.push_back(Run(request));
  return done;
}

absl::Status InMemoryEngine::Sync(IoFile file) {
  if (faults_.sync_error == 0) return absl::OkStatus();
  return ErrnoStatus(faults_.sync_error,
                     absl::StrCat(Find(file).path, ": fsync"));
}

absl::Status InMemoryEngine::Close(IoFile file) {
  Find(file);
  open_.erase(file.id);
  return absl::OkStatus();
}

IoCompletion InMemoryEngine::Run(const IoRequest& request) {
  const auto& [path, mode] = Find(request.file);
  FileTransfer transfer(request, path);
  const bool reads = mode == IoMode::kRead || mode == IoMode::kReadCached;
  if (reads && request.kind == IoKind::kWrite) {
    transfer.Advance(-EBADF, false);
    return {request.tag, transfer.status()};
  }
  std::string& content = contents_[path];
  while (transfer.Advance(Operate(transfer, content), false) ==
         FileTransfer::Next::kAgain) {
  }
  return {request.tag, transfer.status()};
}

int64_t InMemoryEngine::Operate(const FileTransfer& transfer,
                                std::string& content) {
  const auto error = faults_.errors.find(operations_++);
  if (error != faults_.errors.end()) return -error->second;
  size_t bytes = std::min(transfer.bytes(), faults_.operation_bytes_max);
  if (transfer.request().kind == IoKind::kWrite) {
    return OperateWrite(transfer, content, bytes);
  }
  if (transfer.offset() >= content.size()) return 0;
  bytes = std::min(bytes, content.size() - transfer.offset());
  memcpy(transfer.data(), content.data() + transfer.offset(), bytes);
  return static_cast<int64_t>(bytes);
}

int64_t InMemoryEngine::OperateWrite(const FileTransfer& transfer,
                                     std::string& content, size_t bytes) {
  if (bytes == 0) return 0;
  uint64_t others = 0;
  for (const auto& [path, text] : contents_) {
    if (&text != &content) others += text.size();
  }
  const uint64_t room =
      faults_.disk_bytes > others ? faults_.disk_bytes - others : 0;
  if (transfer.offset() >= room) return -ENOSPC;
  bytes = std::min<uint64_t>(bytes, room - transfer.offset());
  content.resize(std::max(content.size(), transfer.offset() + bytes));
  memcpy(content.data() + transfer.offset(), transfer.data(), bytes);
  return static_cast<int64_t>(bytes);
}

}  // namespace troupe
