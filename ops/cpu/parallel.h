// Divides the work of one op over threads: OpenMP's pool of the calling thread,
// which oneDNN uses too, so that no two pools fight for the cores.
//
// ParallelRanges gives each thread one contiguous range, always the same one:
// for loops over memory. ParallelTasks hands out tasks one by one as threads
// become free: for few, uneven ones. Either way an element's result depends on
// its task alone, never on the thread that ran it.
//
// `threads` is what is asked for. OpenMP may grant fewer (OMP_THREAD_LIMIT,
// OMP_MAX_ACTIVE_LEVELS, a region within another), so work is divided within
// the region, by the threads that are there.
#ifndef TROUPE_OPS_CPU_PARALLEL_H_
#define TROUPE_OPS_CPU_PARALLEL_H_

#include <cstdint>

#include "absl/functional/function_ref.h"

namespace troupe {

struct RangeOptions {
  int threads = 1;
  int64_t count = 0;
  int64_t multiple = 1;  // ranges start at multiples of this
  int64_t at_least = 1;  // fewer a thread are not worth waking one
};

// body(begin, end), the ranges tiling [0, count).
void ParallelRanges(const RangeOptions& options,
                    absl::FunctionRef<void(int64_t, int64_t)> body);

// body(task) for each task in [0, count), started in that order.
void ParallelTasks(int threads, int64_t count,
                   absl::FunctionRef<void(int64_t)> body);

// How many threads a region that asks for this many gets, 1 or more: tried on a
// thread of its own. OMP_DYNAMIC takes none away.
int GrantedThreads(int asked);

// While it lives, OpenMP regions that this thread opens (those of oneDNN) ask
// for this many threads.
class OpenMpThreads {
 public:
  explicit OpenMpThreads(int threads);
  ~OpenMpThreads();
  OpenMpThreads(const OpenMpThreads&) = delete;
  OpenMpThreads& operator=(const OpenMpThreads&) = delete;

 private:
  const int before_;
};

}  // namespace troupe

#endif  // TROUPE_OPS_CPU_PARALLEL_H_
