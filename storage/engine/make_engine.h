// The choice of an engine, made once at start: io_uring where the kernel allows
// it (containers often forbid it), else a thread pool. One log line says which.
#ifndef TROUPE_STORAGE_ENGINE_MAKE_ENGINE_H_
#define TROUPE_STORAGE_ENGINE_MAKE_ENGINE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "storage/engine/engine.h"

namespace troupe {

struct MakeIoEngineOptions {
  std::string kind = "auto";  // "auto", "io_uring" or "thread_pool"
  // Requests in flight, 1 to 4096. A disk is kept busy by its rate times its
  // latency: at 1 MiB a request 32 do for 14 GB/s and 2 ms, which is more than
  // any one has. More of them only wait longer.
  int depth = 32;
  bool log = true;  // one line that says which it is
};

// InvalidArgument for an unknown kind or depth; Unavailable where "io_uring" is
// demanded and the kernel refuses. "auto" never fails on a working machine.
absl::StatusOr<std::unique_ptr<IoEngine>> MakeIoEngine(
    const MakeIoEngineOptions& options = {});

}  // namespace troupe

#endif  // TROUPE_STORAGE_ENGINE_MAKE_ENGINE_H_
