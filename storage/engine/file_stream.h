// A new file written from front to back through an engine: bytes are copied
// into a few aligned buffers, so that the disk writes one while the next fills,
// and the checksum is computed on the way. Memory is bounded by buffers *
// buffer_bytes. What the kernel holds back of it is made durable piece by
// piece, as much at a time as the disk takes in seconds and 32 MiB at most: a
// sync of all of it at the end would take as long as the file, and nobody could
// tell how far it is.
#ifndef TROUPE_STORAGE_ENGINE_FILE_STREAM_H_
#define TROUPE_STORAGE_ENGINE_FILE_STREAM_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/engine/engine.h"

namespace troupe {

// What a finished file is known by.
struct FileSummary {
  uint64_t bytes = 0;
  uint32_t crc32c = 0;           // of all its bytes
  std::vector<uint32_t> blocks;  // CRC-32C of each block of block_bytes
};

struct FileStreamOptions {
  size_t buffer_bytes = 1 << 20;  // a multiple of kIoAlignment
  int buffers = 4;
  uint64_t block_bytes = 0;  // 0: the checksums of blocks are not asked for
  OnBytesMoved moved;        // may be empty
};

// The engine must be idle at Create, outlive the stream, and is the stream's
// until Finish or destruction. After an error every call returns that error.
class FileStream {
 public:
  // Makes or empties the file.
  static absl::StatusOr<std::unique_ptr<FileStream>> Create(
      IoEngine& engine, const std::string& path,
      const FileStreamOptions& options = {});
  // Without Finish the file stays as far as it came.
  ~FileStream();

  absl::Status Append(absl::string_view bytes);
  // Writes the rest, syncs and closes the file.
  absl::StatusOr<FileSummary> Finish();

 private:
  struct FreeDeleter {
    void operator()(char* p) const;
  };
  using Buffer = std::unique_ptr<char, FreeDeleter>;

  FileStream(IoEngine& engine, IoFile file, const FileStreamOptions& options);
  void AddToBlocks(absl::string_view bytes);
  absl::Status Flush();  // hands the current buffer to the engine
  absl::Status SyncWhereDue();
  absl::Status AwaitBuffer();  // takes a free one, waiting for completions
  void Collect();              // polls once; records the first error

  IoEngine& engine_;
  const IoFile file_;
  const FileStreamOptions options_;
  std::vector<Buffer> buffers_;
  std::vector<size_t> in_flight_bytes_;  // by buffer
  std::vector<int> free_;                // indices of buffers
  int current_ = -1;                     // the buffer that fills; -1: none
  size_t filled_ = 0;                    // bytes in it
  uint64_t offset_ = 0;                  // of the current buffer in the file
  uint64_t synced_ = 0;                  // bytes, from the start
  uint64_t sync_bytes_;                  // are synced at a time
  uint64_t in_block_ = 0;                // bytes of the block that is not full
  uint32_t block_crc32c_ = 0;
  FileSummary summary_;
  absl::Status error_;
  bool closed_ = false;
};

}  // namespace troupe

#endif  // TROUPE_STORAGE_ENGINE_FILE_STREAM_H_
