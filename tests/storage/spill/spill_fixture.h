// A spill file in a directory of the test's own, and memory to move.
#ifndef TROUPE_TESTS_STORAGE_SPILL_SPILL_FIXTURE_H_
#define TROUPE_TESTS_STORAGE_SPILL_SPILL_FIXTURE_H_

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "proto/base/check.h"
#include "proto/base/philox.h"
#include "proto/base/status.h"
#include "storage/engine/engine.h"
#include "storage/engine/in_memory_engine.h"
#include "storage/engine/make_engine.h"
#include "storage/spill/spill_file.h"
#include "storage/spill/spill_queue.h"
#include "storage/tier/allocator.h"
#include "tests/storage/temp_dir.h"

namespace troupe {

// Memory fit for O_DIRECT; its bytes are drawn from the seed.
class SpillMemory {
 public:
  SpillMemory(size_t bytes, uint64_t seed)
      : data_(static_cast<char*>(HostAllocator().Allocate(bytes).value())),
        bytes_(bytes) {
    for (size_t i = 0; i < bytes; i += 512) {
      data_[i] = static_cast<char>(PhiloxUint32({.seed = seed}, i));
    }
  }
  ~SpillMemory() { HostAllocator().Free(data_, bytes_); }
  SpillMemory(const SpillMemory&) = delete;
  SpillMemory& operator=(const SpillMemory&) = delete;

  char* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  bool operator==(const SpillMemory& other) const {
    return bytes_ == other.bytes_ &&
           std::equal(data_, data_ + bytes_, other.data_);
  }

 private:
  char* const data_;
  const size_t bytes_;
};

inline std::unique_ptr<IoEngine> SmallEngine() {
  return MakeIoEngine({.depth = 4, .log = false}).value();
}

// An engine in memory that finds a spill file, which was made on a disk.
class SpillDiskInMemory : public InMemoryEngine {
 public:
  using InMemoryEngine::InMemoryEngine;

  absl::StatusOr<IoFile> Open(const std::string& path, IoMode mode) override {
    ASSIGN_OR_RETURN(const IoFile made,
                     InMemoryEngine::Open(path, IoMode::kReadWrite));
    RETURN_IF_ERROR(InMemoryEngine::Close(made));
    return InMemoryEngine::Open(path, mode);
  }
};

// A file and a queue of it; small pieces, so that moves have several.
struct Spill {
  std::unique_ptr<SpillFile> file;
  std::unique_ptr<SpillQueue> queue;

  const std::string& path() const { return file->path(); }
  absl::Status Write(SpillRange range, char* data) {
    return queue->Now(IoKind::kWrite, range, data);
  }
  absl::Status Read(SpillRange range, char* data) {
    return queue->Now(IoKind::kRead, range, data);
  }
};

inline Spill MakeSpill(IoEngine& engine, const SpillFileOptions& options) {
  auto file = SpillFile::Create(options);
  CHECK(file.ok()) << file.status().ToString();
  auto queue =
      SpillQueue::Open(**file, engine, {.piece_bytes = 2 * kIoAlignment});
  CHECK(queue.ok()) << queue.status().ToString();
  return {*std::move(file), *std::move(queue)};
}

// The names in a directory, in order.
inline std::vector<std::string> NamesIn(const std::string& directory) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    names.push_back(entry.path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace troupe

#endif  // TROUPE_TESTS_STORAGE_SPILL_SPILL_FIXTURE_H_
