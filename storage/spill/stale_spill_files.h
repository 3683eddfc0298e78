// What processes that were killed left of the NVMe tier: spill files that
// nobody has locked.
#ifndef TROUPE_STORAGE_SPILL_STALE_SPILL_FILES_H_
#define TROUPE_STORAGE_SPILL_STALE_SPILL_FILES_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace troupe {

struct StaleSpillFiles {
  int count = 0;
  uint64_t bytes = 0;
};

// Removes them from the directory, whichever cluster's they were. A file that
// another process holds stays; so does one that does not begin as ours do,
// whatever its name, and one that another user's rights protect. A file without
// content is ours by its name: its maker was killed, or has only begun. Errors
// are those of listing the directory.
absl::StatusOr<StaleSpillFiles> RemoveStaleSpillFiles(
    const std::string& directory);

}  // namespace troupe

#endif  // TROUPE_STORAGE_SPILL_STALE_SPILL_FILES_H_
