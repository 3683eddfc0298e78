// OpenMPI, or whatever mpirun and mpicxx are found at run time, to compare
// with: nothing of it is needed to build or to test.
//
//   std::optional<MpiPeer> mpi = MpiPeer::Start(4);
//   if (mpi.has_value()) seconds = mpi->AllReduce({.bytes = 4096, .rounds =
//   9});
#ifndef TROUPE_TESTS_BENCH_MPI_PEER_H_
#define TROUPE_TESTS_BENCH_MPI_PEER_H_

#include <sys/types.h>

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

struct AllReduceRounds {
  int64_t bytes = 0;  // of f32, no more than 128 MiB
  int64_t rounds = 1;
  int64_t calls = 1;  // of a round, between two barriers
};

class MpiPeer {
 public:
  // Compiles tests/bench/all_reduce_mpi.cc in a folder under /tmp, and starts
  // it on `ranks` ranks. Nothing where there is no MPI; says so on stdout.
  static std::optional<MpiPeer> Start(int ranks);
  MpiPeer(MpiPeer&& other) noexcept;
  MpiPeer& operator=(MpiPeer&&) = delete;
  ~MpiPeer();

  // Rank 0's seconds of a call, round by round. Its ranks sleep otherwise.
  std::vector<double> AllReduce(const AllReduceRounds& rounds);

 private:
  explicit MpiPeer(std::string folder) : folder_(std::move(folder)) {}

  std::string folder_;  // empty: moved from
  pid_t mpirun_ = -1;
  std::vector<FILE*> orders_;  // by rank
  FILE* seconds_ = nullptr;
};

}  // namespace troupe

#endif  // TROUPE_TESTS_BENCH_MPI_PEER_H_
