// The ranks of a plan as real train loops, one process each, that take a step
// when they are told to.
//
//   BenchRanks ranks(plan, {.threads = 2});   // before any thread is started
//   ranks.Step();
//   const double seconds = ranks.SecondsOf({.count = 10});
#ifndef TROUPE_TESTS_BENCH_BENCH_RANKS_H_
#define TROUPE_TESTS_BENCH_BENCH_RANKS_H_

#include <sys/types.h>

#include <string>
#include <vector>

#include "proto/plan.pb.h"
#include "tests/worker/collective/gloo/shared_store.h"

namespace troupe {

// Kernels are loaded and chosen in the first ones; on a GPU the next ones are
// the first that overlap.
inline constexpr int kWarmUpSteps = 3;

struct BenchRanksOptions {
  std::string device = "cpu";
  int threads = 1;  // of each rank
  // Rank 0 says at the end where its last step went; on a GPU instead what it
  // took of its memory, beside what the plan gave it.
  bool breakdown = false;
  // This rank says at the end what of its memory is resident, by tier and line
  // item, beside what the plan gave it. On a CPU.
  int memory_of = -1;
  // For the nvme tier, where the plan has one.
  std::string nvme;
  // Rank 0 says at the end what its last step moved between tiers.
  bool traffic = false;
};

// One thread.
class BenchRanks {
 public:
  // Forks. All ranks have their memory, their weights and their peers when it
  // returns.
  BenchRanks(const Plan& plan, const BenchRanksOptions& options);
  // Ends the processes and waits for them.
  ~BenchRanks();

  // One step of all ranks; CHECKs that none fails. On a GPU the next one is
  // under way when this returns, and goes on while nobody asks for it: what is
  // timed from step to step there is SecondsOf.
  void Step();

  // Of the steps of a span together, each of which begins when the device lets
  // it, as in a job: the ranks are not stopped between two of them, nor between
  // those that warm up and the first.
  struct Span {
    int warm_up = kWarmUpSteps;
    int count = 1;
  };
  double SecondsOf(const Span& span);

 private:
  // Of one rank's process.
  struct Pipes {
    int go = -1;    // a byte starts a step
    int done = -1;  // a byte says that a step is done, the first: ready
  };

  // Of all ranks.
  void Ask(int steps);
  void Await(int steps);

  SharedStore store_;
  std::vector<pid_t> processes_;
  std::vector<Pipes> pipes_;
};

}  // namespace troupe

#endif  // TROUPE_TESTS_BENCH_BENCH_RANKS_H_
