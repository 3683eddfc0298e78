// All-reduce of f32 over loopback, one process a rank: ours (chunked ring on
// Gloo's send and receive; direct exchange for small buffers) beside Gloo's own
// ring, in the same run, on separate connections.
//
//   bazel run //tests/bench:all_reduce_bench
//
// Bus bandwidth = 2 (N - 1) / N x bytes / seconds: what each rank has to send.
// Each figure is of the best of many rounds, in which the two take turns: other
// work on the machine only makes rounds longer.
#include <gloo/allreduce.h>
#include <gloo/math.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "proto/base/check.h"
#include "proto/base/clock.h"
#include "tests/worker/collective/gloo/shared_store.h"
#include "worker/collective/gloo/gloo_communicator.h"
#include "worker/collective/gloo/mesh.h"

namespace troupe {
namespace {

constexpr int64_t kLargest = 128 << 20;

CommunicatorSeat Seat(const std::string& name, int ranks, int rank,
                      SharedStore& store) {
  CommunicatorSeat seat;
  seat.group.name = name;
  for (int i = 0; i < ranks; ++i) seat.group.ranks.push_back(i);
  seat.rank = rank;
  seat.store = &store;
  return seat;
}

double Best(const std::vector<double>& values) {
  return *std::min_element(values.begin(), values.end());
}

class Bench {
 public:
  Bench(int ranks, int rank, SharedStore& store) : ranks_(ranks), rank_(rank) {
    auto ours = CreateGloo(Seat("ours", ranks, rank, store));
    CHECK_OK(ours.status());
    ours_ = *std::move(ours);
    // Its own, so that starting together costs neither of the two.
    auto start = CreateGloo(Seat("start", ranks, rank, store));
    CHECK_OK(start.status());
    start_ = *std::move(start);
    auto theirs = GlooMesh::Connect(Seat("theirs", ranks, rank, store));
    CHECK_OK(theirs.status());
    theirs_ = *std::move(theirs);
    values_.resize(kLargest / sizeof(float), 1e-30f);
  }

  void Run(int64_t bytes) {
    const int rounds = bytes <= (1 << 20) ? 200 : bytes <= (16 << 20) ? 40 : 10;
    std::vector<double> ours, theirs;
    for (int round = -1; round < rounds; ++round) {  // one to warm up
      double mine = 0, gloos = 0;
      if (round % 2 == 0) mine = Seconds([&] { Ours(bytes); });
      gloos = Seconds([&] { Theirs(bytes); });
      if (round % 2 != 0) mine = Seconds([&] { Ours(bytes); });
      if (round < 0) continue;
      ours.push_back(mine);
      theirs.push_back(gloos);
    }
    if (rank_ != 0) return;
    const double mine = Best(ours), gloos = Best(theirs);
    const double bus_bytes = 2.0 * (ranks_ - 1) / ranks_ * bytes;
    std::printf(
        "%5d %9ld KiB %10.1f us %7.2f GB/s %10.1f us %7.2f GB/s %6.2f\n",
        ranks_, static_cast<long>(bytes >> 10), mine * 1e6,
        bus_bytes / mine / 1e9, gloos * 1e6, bus_bytes / gloos / 1e9,
        gloos / mine);
  }

 private:
  template <typename Body>
  double Seconds(const Body& body) {
    CHECK_OK(start_->Barrier({}));
    const int64_t start = clock_.MonotonicNanos();
    body();
    return (clock_.MonotonicNanos() - start) * 1e-9;
  }

  void Ours(int64_t bytes) {
    CHECK_OK(ours_->AllReduce(
        CommBuffer::Of(absl::MakeSpan(values_.data(), bytes / sizeof(float))),
        ReduceOp::kSum, {}));
  }

  void Theirs(int64_t bytes) {
    ::gloo::AllreduceOptions options(theirs_);
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
  std::unique_ptr<Communicator> ours_;
  std::shared_ptr<::gloo::Context> theirs_;
  std::vector<float> values_;
};

void RunRank(int ranks, int rank, SharedStore& store) {
  Bench bench(ranks, rank, store);
  for (int64_t bytes = 4 << 10; bytes <= kLargest; bytes *= 8) bench.Run(bytes);
}

}  // namespace
}  // namespace troupe

int main() {
  std::printf(
      "ranks          size       ours                    Gloo's ring"
      "              ratio\n");
  std::fflush(stdout);
  for (const int ranks : {2, 4}) {
    troupe::SharedStore store;
    for (int rank = 1; rank < ranks; ++rank) {
      if (fork() == 0) {
        troupe::RunRank(ranks, rank, store);
        _exit(0);
      }
    }
    troupe::RunRank(ranks, 0, store);
    while (wait(nullptr) > 0) {
    }
  }
  return 0;
}
