// Memory that several processes map, each at an address of its own.
//
// It is a memfd: a file without a name, which the kernel frees with its last
// user. So nothing is left behind wherever a process is killed, and the size of
// /dev/shm, 64 MiB in most containers, does not matter. Another process opens
// it as /proc/PID/fd/N of its maker, which the kernel allows to the same user
// in the same PID namespace.
#ifndef TROUPE_WORKER_COLLECTIVE_SHARED_MEMORY_SEGMENT_H_
#define TROUPE_WORKER_COLLECTIVE_SHARED_MEMORY_SEGMENT_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace troupe {

// Movable; unmaps itself.
class SharedSegment {
 public:
  // All zeros, with its memory reserved. ResourceExhausted: that much memory is
  // not there; Unavailable: the system has no memfd.
  static absl::StatusOr<SharedSegment> Create(size_t bytes);
  // REQUIRES an address() of Create, and its maker not closed. Unavailable,
  // with the reason: it is not to be had from here.
  static absl::StatusOr<SharedSegment> Open(const std::string& address);

  SharedSegment(SharedSegment&& other) noexcept;
  SharedSegment& operator=(SharedSegment&& other) noexcept;
  ~SharedSegment();

  char* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  // Where others open it: "PID N BYTES NONCE".
  std::string address() const;
  // Nobody can open it any more; those that have it keep it.
  void Close();

 private:
  SharedSegment(int file, size_t bytes) : file_(file), bytes_(bytes) {}
  absl::Status Map();

  int file_ = -1;
  size_t bytes_ = 0;
  uint64_t nonce_ = 0;  // kept past the end of the data: is it the right file?
  char* data_ = nullptr;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_COLLECTIVE_SHARED_MEMORY_SEGMENT_H_
