// The engine for kernels without io_uring: a few threads that call pread and
// pwrite.
#ifndef TROUPE_STORAGE_ENGINE_THREAD_POOL_ENGINE_H_
#define TROUPE_STORAGE_ENGINE_THREAD_POOL_ENGINE_H_

#include <memory>

#include "storage/engine/engine.h"

namespace troupe {

// Starts min(depth, 4) threads. Requires depth >= 1.
std::unique_ptr<IoEngine> MakeThreadPoolEngine(int depth);

}  // namespace troupe

#endif  // TROUPE_STORAGE_ENGINE_THREAD_POOL_ENGINE_H_
