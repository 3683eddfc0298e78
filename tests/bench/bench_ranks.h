// The ranks of a plan as real train loops, one process each, that take a step
// when they are told to.
//
//   BenchRanks ranks(plan, {.threads = 2});   // before any thread is started
//   ranks.Step();
#ifndef TROUPE_TESTS_BENCH_BENCH_RANKS_H_
#define TROUPE_TESTS_BENCH_BENCH_RANKS_H_

#include <sys/types.h>

#include <string>
#include <vector>

#include "proto/plan.pb.h"
#include "tests/worker/collective/gloo/shared_store.h"

namespace troupe {

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

  // One step of all ranks; CHECKs that none fails.
  void Step();

 private:
  // Of one rank's process.
  struct Pipes {
    int go = -1;    // a byte starts a step
    int done = -1;  // a byte says that a step is done, the first: ready
  };

  void AwaitAll();

  SharedStore store_;
  std::vector<pid_t> processes_;
  std::vector<Pipes> pipes_;
};

}  // namespace troupe

#endif  // TROUPE_TESTS_BENCH_BENCH_RANKS_H_
