#include "ops/cpu/parallel.h"

#include <algorithm>
#include <atomic>
#include <thread>

// libgomp's functions; GOMP_parallel is what g++ makes of `#pragma omp
// parallel`. clang would make it a call to a runtime of its own, with a second
// pool of threads beside the one of libdnnl, which is linked with libgomp; and
// its omp.h may be missing. So both compilers call libgomp by hand.
extern "C" {
void GOMP_parallel(void (*body)(void*), void* data, unsigned threads,
                   unsigned flags);
int omp_get_thread_num();
int omp_get_num_threads();
int omp_get_max_threads();
int omp_get_dynamic();
void omp_set_dynamic(int dynamic);
void omp_set_num_threads(int threads);
}

namespace troupe {
namespace {

// With OMP_DYNAMIC OpenMP takes fewer threads where the machine is busy, now
// this many and then that, and sums are taken in other orders.
void HoldThreadCount() {
  if (omp_get_dynamic() != 0) omp_set_dynamic(0);
}

// body(thread, threads) on as many threads as OpenMP grants: `asked`, or fewer.
void RunOnThreads(int asked, absl::FunctionRef<void(int, int)> body) {
  HoldThreadCount();
  GOMP_parallel(
      [](void* data) {
        (*static_cast<absl::FunctionRef<void(int, int)>*>(data))(
            omp_get_thread_num(), omp_get_num_threads());
      },
      &body, asked, 0);
}

}  // namespace

void ParallelRanges(const RangeOptions& options,
                    absl::FunctionRef<void(int64_t, int64_t)> body) {
  const int64_t count = options.count;
  if (count <= 0) return;
  const int asked = static_cast<int>(std::clamp<int64_t>(
      count / std::max<int64_t>(options.at_least, 1), 1, options.threads));
  if (asked == 1) return body(0, count);
  const int64_t pieces = (count + options.multiple - 1) / options.multiple;
  RunOnThreads(asked, [&](int thread, int threads) {
    const auto start = [&](int of) {
      return std::min(pieces * of / threads * options.multiple, count);
    };
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
  const int asked = static_cast<int>(std::min<int64_t>(threads, count));
  RunOnThreads(asked, [&](int, int) {
    for (int64_t task; (task = next.fetch_add(1)) < count;) body(task);
  });
}

int GrantedThreads(int asked) {
  int granted = 1;
  if (asked == 1) return granted;
  // A thread of its own ends with the pool that OpenMP makes for it.
  std::thread([&] {
    RunOnThreads(asked, [&](int thread, int threads) {
      if (thread == 0) granted = threads;
    });
  }).join();
  return granted;
}

OpenMpThreads::OpenMpThreads(int threads) : before_(omp_get_max_threads()) {
  if (before_ != threads) omp_set_num_threads(threads);
  HoldThreadCount();
}

OpenMpThreads::~OpenMpThreads() { omp_set_num_threads(before_); }

}  // namespace troupe
