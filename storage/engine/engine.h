// The seam between Troupe and its disks: submit, poll, close.
//
//   std::unique_ptr<IoEngine> engine = MakeIoEngine({.depth = 32});
//   ASSIGN_OR_RETURN(IoFile file, engine->Open(path, IoMode::kCreate));
//   RETURN_IF_ERROR(engine->Submit({.kind = IoKind::kWrite, .file = file,
//                                   .offset = 0, .data = p, .bytes = n,
//                                   .tag = 7}));
//   for (const IoCompletion& done : engine->Poll(absl::InfiniteDuration())) ...
//   RETURN_IF_ERROR(engine->Sync(file));
//   RETURN_IF_ERROR(engine->Close(file));
//
// Three engines stand behind it: io_uring, a thread pool of pread and pwrite,
// and an in-memory one whose faults tests choose; tests/storage/engine holds
// the one contract suite that all pass. What they promise:
//
// * Each request that Submit accepts completes exactly once, in any order. Two
//   requests in flight must not overlap where one of them writes.
// * A short read or write is continued until done. A read that meets the end of
//   the file is OutOfRange; a full disk ResourceExhausted; each error names the
//   file, the offset and the errno.
// * At most depth() requests are in flight: Submit past that is
//   FailedPrecondition, and the caller polls first. Nothing queues without
//   bound.
// * The buffer is the caller's and must stay until the completion. Where it,
//   offset and size are multiples of kIoAlignment, an engine may pass the page
//   cache by (O_DIRECT); elsewhere, and where the file system refuses, it goes
//   through it. The caller sees no difference.
//
// Thread rule: one thread at a time uses an engine and its files.
#ifndef TROUPE_STORAGE_ENGINE_ENGINE_H_
#define TROUPE_STORAGE_ENGINE_ENGINE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace troupe {

// Of buffers, offsets and sizes that may bypass the page cache, in bytes.
inline constexpr size_t kIoAlignment = 4096;

// Told of bytes that a disk has given or taken, as soon as it has, or the
// system's cache of it. An error ends the transfer, which returns it: how a
// long one is cut short.
using BytesMoved = std::function<absl::Status(uint64_t bytes)>;

// A file that an engine has open; meaningless to another engine.
struct IoFile {
  int id = -1;
};

enum class IoMode {
  kRead,        // must exist
  kReadCached,  // the same, by way of the page cache: others read it, too
  kCreate,      // made, or emptied where it exists; for writing and reading
  kReadWrite,   // made where it is missing, kept where it exists
};

enum class IoKind { kRead, kWrite };

struct IoRequest {
  IoKind kind = IoKind::kRead;
  IoFile file;
  uint64_t offset = 0;  // bytes from the start of the file
  char* data = nullptr;
  size_t bytes = 0;
  uint64_t tag = 0;  // comes back with the completion; the engine ignores it
};

struct IoCompletion {
  uint64_t tag = 0;
  absl::Status status;  // OK: all bytes were read or written
};

class IoEngine {
 public:
  // Waits for what is in flight, then closes every open file.
  virtual ~IoEngine() = default;

  // "io_uring", "thread_pool" or "in_memory".
  virtual absl::string_view name() const = 0;
  virtual int depth() const = 0;
  virtual int in_flight() const = 0;

  virtual absl::StatusOr<IoFile> Open(const std::string& path, IoMode mode) = 0;
  virtual absl::StatusOr<uint64_t> Size(IoFile file) = 0;

  // Starts one request, or says why it cannot.
  virtual absl::Status Submit(const IoRequest& request) = 0;

  // What has completed: waits until there is at least one completion, or until
  // `timeout` has passed, or returns at once where nothing is in flight.
  virtual std::vector<IoCompletion> Poll(absl::Duration timeout) = 0;

  // Makes what was written durable: data and size (fsync). Requires that no
  // request of the file is in flight.
  virtual absl::Status Sync(IoFile file) = 0;

  // Requires that no request of the file is in flight. Does not sync.
  virtual absl::Status Close(IoFile file) = 0;
};

}  // namespace troupe

#endif  // TROUPE_STORAGE_ENGINE_ENGINE_H_
