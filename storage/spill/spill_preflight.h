// Whether a directory can carry the NVMe tier, and how fast: asked once, when a
// worker starts, so that no job meets the answer.
#ifndef TROUPE_STORAGE_SPILL_SPILL_PREFLIGHT_H_
#define TROUPE_STORAGE_SPILL_SPILL_PREFLIGHT_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/base/clock.h"
#include "storage/engine/engine.h"

namespace troupe {

// As a rank meets them: past the page cache, checksums included.
struct SpillRates {
  double write_bytes_per_second = 0;  // of 1 MiB each, as deep as the engine
  double read_bytes_per_second = 0;
  double write_latency_us = 0;  // of 4 KiB, one at a time, in the median
  double read_latency_us = 0;
};

// "writes 2.41 GB/s, reads 1.20 GB/s, 4 KiB in 85 us and 90 us".
std::string SpillRatesText(const SpillRates& rates);

struct SpillPreflightOptions {
  std::string directory;
  uint64_t bytes = 0;  // of the tier, as SpillFileOptions has it
  // Of each rate. With what is written first, and at 100 MB/s, some seconds.
  absl::Duration each = absl::Milliseconds(200);
};

// Makes a spill file of all those bytes, and so removes what killed processes
// left there, writes and reads 64 MiB of it, and removes it. Workers that start
// at once take turns, by a lock in the directory: the rates are those of the
// disk, and what ranks that share it get of them is the plan's to say. What
// cannot work
// is refused in one line that begins with the directory: none, no directory,
// memory instead of a disk, read-only, too small, no permission, no O_DIRECT.
absl::StatusOr<SpillRates> TrySpillDirectory(
    IoEngine& engine, const Clock& clock, const SpillPreflightOptions& options);

// What is asked of the file system before anything is written.
struct SpillFileSystem {
  std::string directory;
  std::string memory;  // "tmpfs", where it lies in memory; else empty
  bool read_only = false;
};
absl::StatusOr<SpillFileSystem> ReadSpillFileSystem(
    const std::string& directory);
absl::Status JudgeSpillFileSystem(const SpillFileSystem& found);

}  // namespace troupe

#endif  // TROUPE_STORAGE_SPILL_SPILL_PREFLIGHT_H_
