// What a ring knows by number, so that the kernel need not look it up and hold
// it for each operation: open files, and memory whose pages it has locked. Both
// tables are empty at first; where the kernel is older than 5.19, which has no
// such tables, they stay so, and operations name descriptors and addresses.
#ifndef TROUPE_STORAGE_ENGINE_RING_TABLES_H_
#define TROUPE_STORAGE_ENGINE_RING_TABLES_H_

#include <liburing.h>

#include <cstddef>
#include <map>
#include <vector>

#include "absl/status/status.h"

namespace troupe {

// Borrows the ring, which must stay where it is.
class RingFiles {
 public:
  explicit RingFiles(io_uring& ring);

  // The file's number, or -1: the table is full, or there is none.
  int Add(int fd);
  // Before the descriptor is closed: the table would keep the file open.
  void Remove(int number);  // nothing for -1

 private:
  io_uring& ring_;
  std::vector<int> free_;  // numbers
};

// Borrows the ring, which must stay where it is.
class RingMemory {
 public:
  explicit RingMemory(io_uring& ring);

  // As IoEngine::RegisterMemory and ForgetMemory say.
  absl::Status Add(char* data, size_t bytes);
  void Remove(const char* data);

  // The number of the piece in which all of these bytes lie, or -1.
  int Find(const char* data, size_t bytes) const;

 private:
  // The kernel takes memory in pieces of limited size.
  struct Piece {
    size_t bytes = 0;
    int number = 0;
    const char* of = nullptr;  // what was registered
  };

  io_uring& ring_;
  std::vector<int> free_;  // numbers
  std::map<const char*, Piece> pieces_;
};

}  // namespace troupe

#endif  // TROUPE_STORAGE_ENGINE_RING_TABLES_H_
