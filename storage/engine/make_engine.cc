#include "storage/engine/make_engine.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/log.h"
#include "storage/engine/io_uring_engine.h"
#include "storage/engine/thread_pool_engine.h"

namespace troupe {

absl::StatusOr<std::unique_ptr<IoEngine>> MakeIoEngine(
    const MakeIoEngineOptions& options) {
  if (options.depth < 1 || options.depth > 4096) {
    return absl::InvalidArgumentError(
        absl::StrCat("I/O engine: depth ", options.depth, "; use 1 to 4096"));
  }
  if (options.kind != "auto" && options.kind != "io_uring" &&
      options.kind != "thread_pool") {
    return absl::InvalidArgumentError(
        absl::StrCat("I/O engine: unknown kind \"", options.kind,
                     "\"; use auto, io_uring or thread_pool"));
  }
  std::string why;
  if (options.kind != "thread_pool") {
    absl::StatusOr<std::unique_ptr<IoEngine>> engine =
        MakeIoUringEngine(options.depth);
    if (engine.ok()) {
      if (options.log) {
        LogInfo(absl::StrCat("I/O engine: io_uring, depth ", options.depth));
      }
      return engine;
    }
    if (options.kind == "io_uring") return engine.status();
    why = absl::StrCat(" (", engine.status().message(), ")");
  }
  if (options.log) {
    LogInfo(
        absl::StrCat("I/O engine: thread_pool, depth ", options.depth, why));
  }
  return MakeThreadPoolEngine(options.depth);
}

}  // namespace troupe
