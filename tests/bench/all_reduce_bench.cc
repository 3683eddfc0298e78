// All-reduce of f32 between processes of this host, one process a rank: ours
// through shared memory and through Gloo's connections, beside Gloo's own ring
// and OpenMPI's, where it is installed.
//
//   bazel run //tests/bench:all_reduce_bench
//
// All take turns, batch by batch, in one run. A time is that of rank 0, from a
// barrier to the end of the call (of small ones, several in a row); of many
// rounds, the shortest, since other work on the machine only makes rounds
// longer, and beside it the median. Bus bandwidth = 2 (N - 1) / N x bytes /
// seconds: what a ring has each rank send.
#include <gloo/allreduce.h>
#include <gloo/math.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "proto/base/check.h"
#include "proto/base/clock.h"
#include "tests/bench/machine_span.h"
#include "tests/bench/mpi_peer.h"
#include "tests/worker/collective/gloo/shared_store.h"
#include "worker/collective/gloo/gloo_communicator.h"
#include "worker/collective/gloo/mesh.h"
#include "worker/collective/shared_memory/shared_memory_communicator.h"

namespace troupe {
namespace {

constexpr int64_t kLargest = 128 << 20;
constexpr int kBatches = 8;

CommunicatorSeat Seat(const std::string& name, int ranks, int rank,
                      SharedStore& store) {
  CommunicatorSeat seat;
  seat.group.name = name;
  for (int i = 0; i < ranks; ++i) seat.group.ranks.push_back(i);
  seat.rank = rank;
  seat.store = &store;
  return seat;
}

// Of a batch. Small ones run back to back, so that nobody gains by coming last
// out of the barrier.
AllReduceRounds RoundsOf(int64_t bytes) {
  if (bytes <= (256 << 10)) return {.bytes = bytes, .rounds = 10, .calls = 20};
  if (bytes <= (4 << 20)) return {.bytes = bytes, .rounds = 5, .calls = 4};
  if (bytes <= (16 << 20)) return {.bytes = bytes, .rounds = 4, .calls = 1};
  return {.bytes = bytes, .rounds = 2, .calls = 1};
}

struct Times {
  std::vector<double> seconds;

  double Best() const {
    return *std::min_element(seconds.begin(), seconds.end());
  }
  double Median() const {
    std::vector<double> sorted = seconds;
    std::sort(sorted.begin(), sorted.end());
    return sorted[sorted.size() / 2];
  }
};

class Bench {
 public:
  Bench(int ranks, int rank, SharedStore& store) : ranks_(ranks), rank_(rank) {
    shared_ = Made(CreateSharedMemory(Seat("memory", ranks, rank, store)));
    gloo_ = Made(CreateGloo(Seat("gloo", ranks, rank, store)));
    // Its own, so that starting together costs none of them.
    start_ = Made(CreateSharedMemory(Seat("start", ranks, rank, store)));
    auto ring = GlooMesh::Connect(Seat("ring", ranks, rank, store));
    CHECK_OK(ring.status());
    ring_ = *std::move(ring);
    values_.resize(kLargest / sizeof(float), 1e-30f);
  }

  // MPI is asked by rank 0, while the others wait at the barrier.
  void Run(int64_t bytes, MpiPeer* mpi) {
    Times shared, gloo, ring, theirs;
    for (int batch = -1; batch < kBatches; ++batch) {  // one to warm up
      const AllReduceRounds rounds = RoundsOf(bytes);
      Times ignored;
      const auto into = [&](Times& times) -> Times& {
        return batch < 0 ? ignored : times;
      };
      Batch(
          rounds, [&] { Reduce(*shared_, bytes); }, into(shared));
      if (mpi != nullptr) {
        Times& times = into(theirs);
        for (const double seconds : mpi->AllReduce(rounds)) {
          times.seconds.push_back(seconds);
        }
      }
      Batch(
          rounds, [&] { Reduce(*gloo_, bytes); }, into(gloo));
      Batch(
          rounds, [&] { GloosRing(bytes); }, into(ring));
    }
    if (rank_ != 0) return;
    std::printf("%5d %7ld KiB", ranks_, static_cast<long>(bytes >> 10));
    for (const Times* times : {&shared, &gloo, &ring, &theirs}) {
      Print(bytes, *times);
    }
    const auto ratio = [&shared](const Times& other) {
      if (other.seconds.empty()) return;
      std::printf("  %5.2f (%5.2f)", other.Best() / shared.Best(),
                  other.Median() / shared.Median());
    };
    ratio(gloo);
    ratio(ring);
    ratio(theirs);
    std::printf("\n");
    std::fflush(stdout);
  }

  // Nobody hangs up while others still talk.
  void Finish() { CHECK_OK(start_->Barrier({})); }

 private:
  static std::unique_ptr<Communicator> Made(
      absl::StatusOr<std::unique_ptr<Communicator>> made) {
    CHECK_OK(made.status());
    return *std::move(made);
  }

  void Batch(const AllReduceRounds& rounds, const std::function<void()>& body,
             Times& times) {
    for (int64_t round = 0; round < rounds.rounds; ++round) {
      CHECK_OK(start_->Barrier({}));
      const int64_t start = clock_.MonotonicNanos();
      for (int64_t call = 0; call < rounds.calls; ++call) body();
      times.seconds.push_back((clock_.MonotonicNanos() - start) * 1e-9 /
                              rounds.calls);
    }
  }

  void Print(int64_t bytes, const Times& times) const {
    if (times.seconds.empty()) {
      std::printf("%22s", "not found");
      return;
    }
    const double bus_bytes = 2.0 * (ranks_ - 1) / ranks_ * bytes;
    std::printf(" %10.1f us %5.2f GB/s", times.Best() * 1e6,
                bus_bytes / times.Best() / 1e9);
  }

  void Reduce(Communicator& communicator, int64_t bytes) {
    CHECK_OK(communicator.AllReduce(
        CommBuffer::Of(absl::MakeSpan(values_.data(), bytes / sizeof(float))),
        ReduceOp::kSum, {}));
  }

  void GloosRing(int64_t bytes) {
    ::gloo::AllreduceOptions options(ring_);
    options.setAlgorithm(::gloo::AllreduceOptions::Algorithm::RING);
    options.setOutput(values_.data(), bytes / sizeof(float));
    options.setReduceFunction(
        static_cast<void (*)(void*, const void*, const void*, size_t)>(
            &::gloo::sum<float>));
    ::gloo::allreduce(options);
  }

  const int ranks_;
  const int rank_;
  const RealClock clock_;
  std::unique_ptr<Communicator> start_;
  std::unique_ptr<Communicator> shared_;
  std::unique_ptr<Communicator> gloo_;
  std::shared_ptr<::gloo::Context> ring_;
  std::vector<float> values_;
};

void RunRank(int ranks, int rank, SharedStore& store, MpiPeer* mpi) {
  Bench bench(ranks, rank, store);
  for (int64_t bytes = 4 << 10; bytes <= kLargest; bytes *= 4) {
    bench.Run(bytes, mpi);
  }
  bench.Run(kLargest, mpi);
  bench.Finish();
}

void RunRanks(int ranks) {
  SharedStore store;
  for (int rank = 1; rank < ranks; ++rank) {
    if (fork() == 0) {
      RunRank(ranks, rank, store, nullptr);
      _exit(0);
    }
  }
  std::optional<MpiPeer> mpi = MpiPeer::Start(ranks);
  RunRank(ranks, 0, store, mpi.has_value() ? &*mpi : nullptr);
}

}  // namespace
}  // namespace troupe

int main() {
  troupe::MachineSpan machine(0);
  std::printf(
      "ranks        size    shared memory           gloo backend"
      "            Gloo's ring             MPI                  "
      "   time over shared memory's, best (median): gloo, ring, MPI\n");
  std::fflush(stdout);
  for (const int ranks : {2, 4}) {
    troupe::RunRanks(ranks);
    while (wait(nullptr) > 0) {
    }
  }
  std::printf("%s\n", machine.Line().c_str());
  return 0;
}
