// Checks of disks: the engine that carries reads and writes, the folder in
// which a cluster keeps its state, and the directory of an nvme tier.
#ifndef TROUPE_WORKER_DOCTOR_STORAGE_H_
#define TROUPE_WORKER_DOCTOR_STORAGE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/engine/engine.h"
#include "storage/spill/spill_preflight.h"
#include "worker/doctor/finding.h"

namespace troupe {

Finding CheckIoUring();
// `dir` need not be there yet: then the nearest folder above it is tried.
// Leaves nothing behind.
Finding CheckStateFolder(const std::string& dir);
// Makes a file of 64 MiB there and measures it. Leaves nothing behind.
Finding CheckNvme(const std::string& dir);

// The same with 1 MiB, not measured; and its disk has a little room.
Finding CheckNvmeWritable(const std::string& dir);
inline constexpr int64_t kNvmeFreeMin = int64_t{64} << 20;
// Of roots that are installed: their directories can be opened, and the file
// systems of those that are `written` are not read-only.
Finding CheckRoots(const std::vector<std::string>& names,
                   const std::vector<std::string>& written);
// Those whose file system is not read-only.
std::vector<std::string> WritableRoots(const std::vector<std::string>& names);

// `probe`: what starting the engine said.
Finding JudgeIoUring(const absl::Status& probe);

struct StateFolder {
  std::string path;
  std::string engine;      // that was tried, as it names itself
  absl::Status trial;      // of writing and reading back
  int64_t free_bytes = 0;  // of its file system
};
Finding JudgeStateFolder(const StateFolder& folder);

// `engine` carried the trial.
Finding JudgeNvme(const std::string& dir, absl::string_view engine,
                  const absl::StatusOr<SpillRates>& trial);

// Writes 1 MiB to a new file, syncs, reads it back and compares: DataLoss where
// it differs, else the engine's errors. The file loses its name as soon as it
// is open, so that nothing is left however this ends.
absl::Status WriteAndReadBack(IoEngine& engine, const std::string& path);

}  // namespace troupe

#endif  // TROUPE_WORKER_DOCTOR_STORAGE_H_
