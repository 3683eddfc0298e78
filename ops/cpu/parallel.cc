#include "ops/cpu/parallel.h"

#include <algorithm>
#include <atomic>

// libgomp's functions; GOMP_parallel is what g++ makes of `#pragma omp
// parallel`. clang would make it a call to a runtime of its own, with a second
// pool of threads beside the one of libdnnl, which is linked with libgomp; and
// its omp.h may be missing. So both compilers call libgomp by hand.
extern "C" {
void GOMP_parallel(void (*body)(void*), void* data, unsigned threads,
                   unsigned flags);
int omp_get_thread_num();
int omp_get_max_threads();
void omp_set_num_threads(int threads);
}

namespace troupe {
namespace {

// body(thread) on `threads` threads.
void RunOnThreads(int threads, absl::FunctionRef<void(int)> body) {
  GOMP_parallel(
      [](void* data) {
        (*static_cast<absl::FunctionRef<void(int)>*>(data))(
            omp_get_thread_num());
      },
      &body, threads, 0);
}

}  // namespace

void ParallelRanges(const RangeOptions& options,
                    absl::FunctionRef<void(int64_t, int64_t)> body) {
  const int64_t count = options.count;
  if (count <= 0) return;
  const int threads = static_cast<int>(std::clamp<int64_t>(
      count / std::max<int64_t>(options.at_least, 1), 1, options.threads));
  if (threads == 1) return body(0, count);
  const int64_t pieces = (count + options.multiple - 1) / options.multiple;
  const auto start = [&](int thread) {
    return std::min(pieces * thread / threads * options.multiple, count);
  };
  RunOnThreads(threads, [&](int thread) {
    const int64_t begin = start(thread);
    const int64_t end = start(thread + 1);
    if (begin < end) body(begin, end);
  });
}

void ParallelTasks(int threads, int64_t count,
                   absl::FunctionRef<void(int64_t)> body) {
  if (threads == 1 || count == 1) {
    for (int64_t task = 0; task < count; ++task) body(task);
    return;
  }
  std::atomic<int64_t> next{0};
  const int running = static_cast<int>(std::min<int64_t>(threads, count));
  RunOnThreads(running, [&](int) {
    for (int64_t task; (task = next.fetch_add(1)) < count;) body(task);
  });
}

OpenMpThreads::OpenMpThreads(int threads) : before_(omp_get_max_threads()) {
  if (before_ != threads) omp_set_num_threads(threads);
}

OpenMpThreads::~OpenMpThreads() { omp_set_num_threads(before_); }

}  // namespace troupe
