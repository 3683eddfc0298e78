// Files that are strings, on a disk whose faults a test chooses. Nothing
// happens but in Poll, so a test is deterministic.
#ifndef TROUPE_STORAGE_ENGINE_IN_MEMORY_ENGINE_H_
#define TROUPE_STORAGE_ENGINE_IN_MEMORY_ENGINE_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "storage/engine/engine.h"
#include "storage/engine/transfer.h"

namespace troupe {

struct InMemoryFaults {
  // The most bytes that an operation moves: fewer than most requests have.
  size_t operation_bytes_max = std::numeric_limits<size_t>::max();
  // Writes that would make the files larger than this in sum meet ENOSPC, after
  // what still fits.
  uint64_t disk_bytes = std::numeric_limits<uint64_t>::max();
  // These operations, counted from 0, answer with that errno instead.
  std::map<int, int> errors;
  // What Sync answers; 0: success.
  int sync_error = 0;
  // Not 0: one completion a Poll, in an order drawn from this seed.
  uint64_t shuffle_seed = 0;
};

class InMemoryEngine : public IoEngine {
 public:
  explicit InMemoryEngine(int depth, InMemoryFaults faults = {});

  // The faults from now on. Operations keep counting.
  void set_faults(InMemoryFaults faults) { faults_ = std::move(faults); }
  // Requires that the file exists.
  const std::string& Content(const std::string& path) const;
  // The same, to be changed behind the engine's back.
  std::string& Content(const std::string& path);

  absl::string_view name() const override { return "in_memory"; }
  int depth() const override { return depth_; }
  int in_flight() const override {
    return static_cast<int>(queue_.size() + cancelled_.size());
  }
  absl::StatusOr<IoFile> Open(const std::string& path, IoMode mode) override;
  absl::StatusOr<uint64_t> Size(IoFile file) override;
  std::vector<IoCompletion> Poll(absl::Duration timeout) override;
  // Of all that is in flight nothing is done.
  void Cancel() override;
  absl::Status Sync(IoFile file) override;
  absl::Status Close(IoFile file) override;

 protected:
  void Start(absl::Span<const IoRequest> requests) override;

 private:
  struct OpenFile {
    std::string path;
    IoMode mode;
  };

  const OpenFile& Find(IoFile file) const;
  IoCompletion Run(const IoRequest& request);
  int64_t Operate(const FileTransfer& transfer, std::string& content);
  int64_t OperateWrite(const FileTransfer& transfer, std::string& content,
                       size_t bytes);

  const int depth_;
  InMemoryFaults faults_;
  int operations_ = 0;
  uint64_t polls_ = 0;
  int next_id_ = 0;
  std::map<std::string, std::string> contents_;  // by path
  absl::flat_hash_map<int, OpenFile> open_;
  // At most depth_ in sum.
  std::vector<IoRequest> queue_;
  std::vector<IoCompletion> cancelled_;
};

}  // namespace troupe

#endif  // TROUPE_STORAGE_ENGINE_IN_MEMORY_ENGINE_H_
