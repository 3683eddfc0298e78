// The collectives of the shared-memory backend between processes of this host,
// one process a rank, at the sizes that tensor parallelism and data parallelism
// call them with, beside a memcpy of as many bytes.
//
//   bazel run //tests/bench:collective_bench
//
// Operations take turns, batch by batch, in one run. A time is that of rank 0,
// from a barrier to the end of the calls, of which several run in a row; the
// shortest of many rounds, and in brackets the median. GB/s are bytes of the
// whole buffer over the shortest time.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "proto/base/check.h"
#include "proto/base/clock.h"
#include "tests/bench/machine_span.h"
#include "tests/worker/collective/gloo/shared_store.h"
#include "worker/collective/shared_memory/shared_memory_communicator.h"

namespace troupe {
namespace {

constexpr int64_t kSizes[] = {64 << 10, 1536 << 10, 25 << 20};
constexpr int64_t kCallBytes = 8 << 20;  // of the calls of a round together
constexpr int kBatches = 10;
constexpr int kRounds = 5;  // of a batch

// Rows as experts may get them: each rank has as much for rank 0 as for all
// others together, but no more than that can receive.
struct Uneven {
  Uneven(int rank, int ranks, int64_t elements) {
    const auto between = [&](int to) {
      return to == 0 ? elements / ranks : elements / ranks / (ranks - 1);
    };
    std::vector<int64_t> out, in;
    for (int peer = 0; peer < ranks; ++peer) {
      out.push_back(between(peer));
      in.push_back(between(rank));
    }
    gives = RangesOfSizes(out);
    takes = RangesOfSizes(in);
  }
  std::vector<ElementRange> gives, takes;
};

class Bench {
 public:
  Bench(int ranks, int rank, SharedStore& store) : rank_(rank) {
    CommunicatorSeat seat;
    seat.group.name = "memory";
    for (int i = 0; i < ranks; ++i) seat.group.ranks.push_back(i);
    seat.rank = rank;
    seat.store = &store;
    auto made = CreateSharedMemory(seat);
    CHECK_OK(made.status());
    communicator_ = *std::move(made);
  }

  void Run(int64_t bytes) {
    std::vector<float> values(bytes / sizeof(float), 1e-30f), copy = values;
    const CommBuffer data = CommBuffer::Of(absl::MakeSpan(values));
    const CommBuffer own = communicator_->Block(data, rank_);
    struct Row {
      const char* name;
      std::function<void()> call;
      std::vector<double> seconds;
    };
    std::vector<Row> rows;
    rows.push_back(
        {"all-reduce",
         [&] { CHECK_OK(communicator_->AllReduce(data, ReduceOp::kSum, {})); },
         {}});
    rows.push_back({"all-gather",
                    [&] {
                      CHECK_OK(communicator_->AllGather(
                          {.send = own, .receive = data}, {}));
                    },
                    {}});
    rows.push_back({"reduce-scatter",
                    [&] {
                      CHECK_OK(communicator_->ReduceScatter(
                          {.send = data, .receive = own}, ReduceOp::kSum, {}));
                    },
                    {}});
    const CommBuffer other = CommBuffer::Of(absl::MakeSpan(copy));
    rows.push_back({"all-to-all",
                    [&] {
                      CHECK_OK(communicator_->AllToAll(
                          {.send = data, .receive = other}, {}));
                    },
                    {}});
    const Uneven uneven(rank_, communicator_->size(), data.elements);
    rows.push_back(
        {"all-to-all, uneven",
         [&] {
           CHECK_OK(communicator_->AllToAll({.send = data,
                                             .receive = other,
                                             .send_ranges = uneven.gives,
                                             .receive_ranges = uneven.takes},
                                            {}));
         },
         {}});
    rows.push_back({"memcpy",
                    [&] { std::memcpy(copy.data(), values.data(), bytes); },
                    {}});
    const int64_t calls = std::max<int64_t>(1, kCallBytes / bytes);
    for (int batch = -1; batch < kBatches; ++batch) {  // one to warm up
      for (Row& row : rows) {
        for (int round = 0; round < kRounds; ++round) {
          CHECK_OK(communicator_->Barrier({}));
          const int64_t start = clock_.MonotonicNanos();
          for (int64_t call = 0; call < calls; ++call) row.call();
          if (batch < 0) continue;
          row.seconds.push_back((clock_.MonotonicNanos() - start) * 1e-9 /
                                static_cast<double>(calls));
        }
      }
    }
    if (rank_ != 0) return;
    for (Row& row : rows) {
      std::sort(row.seconds.begin(), row.seconds.end());
      const double best = row.seconds.front();
      std::printf("%5d %7ld KiB  %-20s %10.1f us (%10.1f us) %7.2f GB/s\n",
                  communicator_->size(), static_cast<long>(bytes >> 10),
                  row.name, best * 1e6,
                  row.seconds[row.seconds.size() / 2] * 1e6,
                  static_cast<double>(bytes) / best / 1e9);
    }
    std::fflush(stdout);
  }

  // Nobody hangs up while others still talk.
  void Finish() { CHECK_OK(communicator_->Barrier({})); }

 private:
  const int rank_;
  const RealClock clock_;
  std::unique_ptr<Communicator> communicator_;
};

void RunRank(int ranks, int rank, SharedStore& store) {
  Bench bench(ranks, rank, store);
  for (const int64_t bytes : kSizes) bench.Run(bytes);
  bench.Finish();
}

void RunRanks(int ranks) {
  SharedStore store;
  for (int rank = 1; rank < ranks; ++rank) {
    if (fork() == 0) {
      RunRank(ranks, rank, store);
      _exit(0);
    }
  }
  RunRank(ranks, 0, store);
  while (wait(nullptr) > 0) {
  }
}

}  // namespace
}  // namespace troupe

int main() {
  troupe::MachineSpan machine(0);
  std::printf(
      "ranks        size  operation                 shortest"
      "       (median)      bytes/s\n");
  for (const int ranks : {2, 4}) troupe::RunRanks(ranks);
  std::printf("%s\n", machine.Line().c_str());
  return 0;
}
