// The seam between Troupe and its disks: submit, poll, close.
//
//   ASSIGN_OR_RETURN(std::unique_ptr<IoEngine> engine, MakeIoEngine());
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
//   bound. Requests that are submitted together cost one call of the system.
// * The buffer is the caller's and must stay until the completion. Where it,
//   offset and size are multiples of kIoAlignment, an engine may pass the page
//   cache by (O_DIRECT); elsewhere, and where the file system refuses, it goes
//   through it. The caller sees no difference. A file open in mode kDirect
//   never goes through the cache, and its requests must be so aligned.
// * No thread sleeps for a request: what has completed is learnt in Poll.
//
// Thread rule: one thread at a time uses an engine and its files. A lane that
// reads and writes has an engine of its own.
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
#include "absl/types/span.h"

namespace troupe {

// Of buffers, offsets and sizes that may bypass the page cache, in bytes.
inline constexpr size_t kIoAlignment = 4096;

// Told of bytes that a disk has given or taken, as soon as it has, or the
// system's cache of it. An error ends the transfer, which returns it: how a
// long one is cut short.
using OnBytesMoved = std::function<absl::Status(uint64_t bytes)>;

// A file that an engine has open; meaningless to another engine.
struct IoFile {
  int id = -1;
};

enum class IoMode {
  kRead,        // must exist
  kReadCached,  // the same, by way of the page cache: others read it, too
  kCreate,      // made, or emptied where it exists; for writing and reading
  kReadWrite,   // made where it is missing, kept where it exists
  kDirect,  // must exist; for both, past the page cache, else InvalidArgument
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

  // Starts the requests in this order: all of them or, where there is no room,
  // none.
  absl::Status Submit(absl::Span<const IoRequest> requests);
  absl::Status Submit(const IoRequest& request) {
    return Submit(absl::MakeConstSpan(&request, 1));
  }

  // What has completed: waits until there is at least one completion, or until
  // `timeout` has passed, or returns at once where nothing is in flight.
  virtual std::vector<IoCompletion> Poll(absl::Duration timeout) = 0;

  // Asks that what is in flight ends soon. Each request still completes, with
  // success where it came first, else Cancelled; of a write that was cancelled
  // any part may have been done.
  virtual void Cancel() = 0;

  // Tells the engine of memory that requests will come from and go to, so that
  // it need not find and lock its pages for each of them. The memory must stay
  // mapped until it is forgotten, and is locked meanwhile: ResourceExhausted
  // where the user may lock no more, Unimplemented where the kernel is too old.
  // Then, and without, everything works but costs more. An engine that has no
  // use for it takes all. Requires that it overlaps with none that is known.
  virtual absl::Status RegisterMemory(char* data, size_t bytes) {
    return absl::OkStatus();
  }
  // Requires that no request of it is in flight. Nothing happens for memory
  // that was not registered.
  virtual void ForgetMemory(const char* data) {}

  // Makes what was written durable: data and size (fsync). Requires that no
  // request of the file is in flight.
  virtual absl::Status Sync(IoFile file) = 0;

  // Requires that no request of the file is in flight. Does not sync.
  virtual absl::Status Close(IoFile file) = 0;

 protected:
  // There is room for all of them.
  virtual void Start(absl::Span<const IoRequest> requests) = 0;
};

}  // namespace troupe

#endif  // TROUPE_STORAGE_ENGINE_ENGINE_H_
