// MPI's all-reduce, timed when all_reduce_bench asks for it: that program
// compiles this one with mpicxx and starts it with mpirun. Not part of the
// build.
//
//   all_reduce_mpi FOLDER
//
// Rank r reads orders (bytes, rounds, calls of a round) from the pipe FOLDER/r,
// and so uses no processor time between them. Rank 0 answers each with the
// seconds of a call in every round, in FOLDER/seconds.
#include <mpi.h>

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const std::string folder = argv[1];
  FILE* const orders =
      std::fopen((folder + "/" + std::to_string(rank)).c_str(), "r");
  FILE* const answers =
      rank == 0 ? std::fopen((folder + "/seconds").c_str(), "w") : nullptr;
  std::vector<float> values((128 << 20) / sizeof(float), 1e-30f);
  int64_t order[3];  // bytes, rounds, calls
  while (std::fread(order, sizeof(order), 1, orders) == 1) {
    std::vector<double> seconds(order[1]);
    for (double& round : seconds) {
      MPI_Barrier(MPI_COMM_WORLD);
      const double start = MPI_Wtime();
      for (int64_t call = 0; call < order[2]; ++call) {
        MPI_Allreduce(MPI_IN_PLACE, values.data(), order[0] / sizeof(float),
                      MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
      }
      round = (MPI_Wtime() - start) / order[2];
    }
    if (rank != 0) continue;
    std::fwrite(seconds.data(), sizeof(double), seconds.size(), answers);
    std::fflush(answers);
  }
  MPI_Finalize();
  return 0;
}
