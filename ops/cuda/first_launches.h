// Keeps kernels that are launched for the first time and operations between
// GPUs apart in time.
//
// CUDA loads a kernel's code when it is first launched: with a lock held that
// every other launch needs, and behind all that the GPU has been given. An
// operation of NCCL occupies the GPU until the peers' part of it runs. Let two
// be under way, of two lanes: the one here waits for a peer, the peer's for us.
// If both ranks now load a kernel, neither can launch what the other waits for
// (CUDA C++ programming guide, "Lazy Loading", on kernels that must run at the
// same time). So a first launch waits until no operation is under way here, and
// no operation begins during one:
//
//   launches.Run(kernel, [&] { cudaLaunchKernel(kernel, ...); });
//
//   auto operation = std::make_unique<FirstLaunches::Operation>(launches);
//   ncclAllReduce(...);
//   ... when a fence says that it has run ...
//   operation.reset();
//
// Where members meet before each operation is enqueued, as in the first step,
// this waits for nothing without an end: an operation whose members have met
// waits for first launches at the peers at most, and these for operations that
// have met. Later an operation may be under way that a peer does not enqueue
// before a first launch of its own has ended, which waits for another one of
// that kind. Neither waits for longer than kPatience, and then goes on as if
// nobody had looked: nearly always that does no harm, and where it does, the
// operations' deadlines end it.
#ifndef TROUPE_OPS_CUDA_FIRST_LAUNCHES_H_
#define TROUPE_OPS_CUDA_FIRST_LAUNCHES_H_

#include <cstdint>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace troupe {

// Thread-safe. Of one device.
class FirstLaunches {
 public:
  static constexpr absl::Duration kPatience = absl::Seconds(5);

  explicit FirstLaunches(absl::Duration patience = kPatience)
      : patience_(patience) {}
  FirstLaunches(const FirstLaunches&) = delete;
  FirstLaunches& operator=(const FirstLaunches&) = delete;

  // Runs `launch`: at once where `kernel` has been launched before, else alone.
  // Of a library's kernels, which it chooses by some size, `kernel` stands for
  // all together with that size.
  void Run(const void* kernel, absl::FunctionRef<void()> launch,
           int64_t size = 0);
  // Runs `launch` while no operation is under way, and tells it whether that
  // could be had. For calls that load code of others, or wait for all that the
  // GPU does: the latter only where it is alone.
  void RunAlone(absl::FunctionRef<void(bool alone)> launch);

  // From before an operation's launch until it has ended.
  class Operation {
   public:
    explicit Operation(FirstLaunches& launches);
    ~Operation();
    Operation(const Operation&) = delete;
    Operation& operator=(const Operation&) = delete;

   private:
    FirstLaunches& launches_;
  };

 private:
  const absl::Duration patience_;
  absl::Mutex mutex_;
  int operations_ ABSL_GUARDED_BY(mutex_) = 0;  // under way
  int alone_ ABSL_GUARDED_BY(mutex_) = 0;       // that run, not that wait
  absl::flat_hash_set<std::pair<const void*, int64_t>> launched_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace troupe

#endif  // TROUPE_OPS_CUDA_FIRST_LAUNCHES_H_
