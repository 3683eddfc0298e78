// By what a spill file is known as ours: its name, and the line of text that it
// begins with, which says whose it is to people, too:
//
//   $ head -1 /nvme/troupe-spill-4f1c09a2
//   troupe spill file 1: cluster 10.0.0.1:7777, job gpt, rank 3, pid 17 on
//   host7, crc32c 0fd1a29c                                            (on that
//   line)
#ifndef TROUPE_STORAGE_SPILL_SPILL_HEADER_H_
#define TROUPE_STORAGE_SPILL_SPILL_HEADER_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace troupe {

// What precedes the ranges of a spill file.
inline constexpr size_t kSpillHeaderBytes = 4096;

// The owner of a file. `cluster` is what tells a person which it is: the
// scheduler's address, say.
struct SpillOwner {
  std::string cluster;
  std::string job;
  int rank = 0;
};

// Without the end of the line; its checksum is that of what precedes it.
std::string SpillHeader(const SpillOwner& owner);
// Whether what a file begins with is such a line, of any owner.
bool IsSpillHeader(absl::string_view text);

// A path in the directory that nobody else comes to.
std::string NewSpillPath(const std::string& directory);
// Whether the name of a file, without directories, is one that this makes.
bool IsSpillName(absl::string_view name);

}  // namespace troupe

#endif  // TROUPE_STORAGE_SPILL_SPILL_HEADER_H_
