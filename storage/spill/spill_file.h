// The NVMe tier of one rank: a file whose ranges are the addresses of the tier,
// zero at first as memory of other tiers is. Threads move them, each through a
// queue of its own:
//
//   ASSIGN_OR_RETURN(auto spill, SpillFile::Create({
//       .directory = "/nvme", .bytes = 8 << 30, .owner = {"host7", "gpt",
//       0}}));
//   ASSIGN_OR_RETURN(auto queue, SpillQueue::Open(*spill, *engine));
//
// The room is taken when the file is made, so that a step does not meet a full
// disk. Nothing goes through the page cache: what rests here costs no memory
// but four bytes of each block of 4096, for its CRC-32C. Each block is checked
// when it is read: a file that somebody changed, and a disk that lost a write,
// are named, never trained with.
//
// The file is locked while it is used and removed at its end. What a process
// that was killed leaves is removed by the next process that makes one in the
// directory (stale_spill_files.h). Its content is worth nothing to anybody
// else: checkpoints are what is durable.
//
// Thread rule: any thread, but one at a time for the same bytes: a plan orders
// the moves of what it keeps here.
#ifndef TROUPE_STORAGE_SPILL_SPILL_FILE_H_
#define TROUPE_STORAGE_SPILL_SPILL_FILE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "storage/disk/file_lock.h"
#include "storage/engine/engine.h"
#include "storage/spill/spill_header.h"

namespace troupe {

// Of the tier, from 0; the file has its header before. Multiples of
// kIoAlignment.
struct SpillRange {
  uint64_t offset = 0;
  uint64_t bytes = 0;

  uint64_t end() const { return offset + bytes; }
};

struct SpillFileOptions {
  std::string directory;  // must be there
  uint64_t bytes = 0;     // of the tier, a multiple of kIoAlignment
  uint64_t room = 0;      // that the file takes at least, used or not
  SpillOwner owner;
  // Where the checksums lie, one of each block: memory that outlives the file.
  // Empty: the file's own.
  absl::Span<uint32_t> sums;
};

class SpillFile {
 public:
  // ResourceExhausted, with both figures, where the file system has less room;
  // errors name the directory or the file.
  static absl::StatusOr<std::unique_ptr<SpillFile>> Create(
      const SpillFileOptions& options);
  // Then the file is gone. REQUIRES that no queue is left.
  ~SpillFile() = default;
  SpillFile(const SpillFile&) = delete;
  SpillFile& operator=(const SpillFile&) = delete;

  const std::string& path() const { return path_; }
  uint64_t bytes() const { return bytes_; }

  // For queues. InvalidArgument for a range that is not in the tier, or that,
  // or whose memory, is not aligned.
  absl::Status CheckRange(SpillRange range, const char* data) const;
  // FailedPrecondition where a write of a part of it has failed.
  absl::Status CheckReadable(SpillRange range) const;
  // What is read there from now on has to be `data`; or nothing can be read.
  void Expect(SpillRange range, const char* data);
  void ExpectNothing(SpillRange range);
  // Whether it has to be zero, as nothing else was written there.
  bool IsZero(SpillRange range) const;
  // DataLoss where `data`, which was read there, is not what was written.
  absl::Status Verify(SpillRange range, const char* data) const;

 private:
  SpillFile(const SpillFileOptions& options, std::string header, FileLock lock,
            std::string path);

  absl::Status Changed(uint64_t block, uint32_t crc32c) const;

  const uint64_t bytes_;
  const std::string header_;
  const std::string path_;
  const FileLock lock_;             // removes the file
  std::vector<uint32_t> own_sums_;  // where nobody else has them
  // By block, never 0; 0: nothing can be read.
  const absl::Span<uint32_t> sums_;
};

}  // namespace troupe

#endif  // TROUPE_STORAGE_SPILL_SPILL_FILE_H_
