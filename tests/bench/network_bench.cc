// All-reduce of f32 between hosts that networks of unlike speed join, one
// process a rank: Gloo's own ring, our flat exchange, the exchange over levels,
// one after the other (two_level), and in pieces on all of them at once
// (blueconnect). Each rank enters a network namespace, whose links the caller
// has limited; tests/bench/network_bench.sh makes the namespaces, runs this for
// several shapes and rates, and removes them.
//
//   network_bench PREFIX SIZES RATES [MIB...]
//   network_bench troupe-net- 2x4 400,100 1 4 16 64
//
// SIZES are the levels, the innermost first; rank r is at place
// (r / stride) % size of each and runs in namespace PREFIX<r>,
// at 10.78.0.<r+1>. RATES are megabits a second of a link of each level: of a
// rank's own adapter, then of the uplink that the members of an inner level
// share.
//
// All take turns in one run. A time is from a barrier of all ranks to the end
// of the slowest one's call; of the rounds the shortest. The bound is what the
// slowest links must carry at least, over their rate: one of n links that join
// as many places carries 2 (n - 1) / n of the bytes in each direction.
#include <fcntl.h>
#include <gloo/allreduce.h>
#include <gloo/math.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "proto/base/check.h"
#include "proto/base/clock.h"
#include "proto/plan.pb.h"
#include "scheduler/collectives/steps_over.h"
#include "tests/bench/machine_span.h"
#include "tests/worker/collective/gloo/shared_store.h"
#include "worker/collective/create_communicator.h"
#include "worker/collective/gloo/mesh.h"

namespace troupe {
namespace {

constexpr int kRounds = 3;
// Of a round of messages between neighbours, beside its bytes: what choosing
// pieces takes for granted.
constexpr double kRoundSeconds = 0.3e-3;

struct Network {
  std::string prefix;                // of the namespaces
  std::vector<int> sizes;            // of levels, the innermost first
  std::vector<double> bytes_second;  // of a link of each level

  int ranks() const {
    int product = 1;
    for (const int size : sizes) product *= size;
    return product;
  }
};

// Seconds for which a link of a level is full that joins one of `places` places
// to the others, in an all-reduce: each of the places sends, and takes, what
// the others have of it.
double Full(double places, int64_t bytes, double bytes_second) {
  return 2 * (places - 1) / places * bytes / bytes_second;
}

// The least that any way takes: on the slowest links.
double Bound(const Network& network, int64_t bytes) {
  double bound = 0;
  int places = network.ranks();  // that the links of a level join
  for (size_t level = 0; level < network.sizes.size(); ++level) {
    bound = std::max(bound, Full(places, bytes, network.bytes_second[level]));
    places /= network.sizes[level];
  }
  return bound;
}

// A ring crosses each link once in each direction.
double OfRing(const Network& network, int64_t bytes) {
  return Full(network.ranks(), bytes,
              *std::min_element(network.bytes_second.begin(),
                                network.bytes_second.end()));
}

// Of each level, in `pieces` pieces of the buffer.
std::vector<double> OfLevels(const Network& network, int64_t bytes,
                             int pieces) {
  std::vector<double> seconds;
  for (size_t level = 0; level < network.sizes.size(); ++level) {
    seconds.push_back(
        Full(network.sizes[level], bytes, network.bytes_second[level]) +
        pieces * 2 * (network.sizes[level] - 1) * kRoundSeconds);
  }
  return seconds;
}

// One level after the other.
double OverLevels(const Network& network, int64_t bytes) {
  double seconds = 0;
  for (const double level : OfLevels(network, bytes, 0)) seconds += level;
  return seconds;
}

// All at once: the busiest level, and of the others what they do with a piece.
double InPieces(const Network& network, int64_t bytes, int pieces) {
  double all = 0;
  double busiest = 0;
  for (const double level : OfLevels(network, bytes, pieces)) {
    all += level;
    busiest = std::max(busiest, level);
  }
  return busiest + (all - busiest) / pieces;
}

int PiecesFor(const Network& network, int64_t bytes) {
  int best = 1;
  for (int pieces = 2; pieces <= 64; pieces *= 2) {
    if (InPieces(network, bytes, pieces) < InPieces(network, bytes, best)) {
      best = pieces;
    }
  }
  return best;
}

// What all ranks have in memory that they share.
struct Meeting {
  explicit Meeting(int ranks) {
    pthread_barrierattr_t attributes;
    pthread_barrierattr_init(&attributes);
    pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    CHECK_EQ(pthread_barrier_init(&barrier, &attributes, ranks), 0);
  }
  void Wait() { pthread_barrier_wait(&barrier); }

  pthread_barrier_t barrier;
};

void Enter(const std::string& name) {
  const int file = open(absl::StrCat("/run/netns/", name).c_str(), O_RDONLY);
  CHECK_GE(file, 0) << "no network namespace " << name;
  CHECK_EQ(setns(file, CLONE_NEWNET), 0) << "needs root";
  close(file);
}

class Bench {
 public:
  Bench(const Network& network, int rank, SharedStore& store, Meeting& meeting,
        const std::vector<int64_t>& sizes)
      : network_(network), rank_(rank), meeting_(meeting) {
    levels_ =
        Made(CreateCommunicator(GroupOverLevels({}), 0, Seat("levels", store)));
    pieces_ = Made(
        CreateCommunicator(GroupOverLevels(sizes), 0, Seat("pieces", store)));
    Group flat;
    flat.set_name("flat");
    flat.add_carriers()->set_backend("gloo");
    flat_ = Made(CreateCommunicator(flat, 0, Seat("flat", store)));
    auto ring = GlooMesh::Connect(Seat("ring", store));
    CHECK_OK(ring.status());
    ring_ = *std::move(ring);
  }

  void Run(int64_t bytes) {
    values_.assign(bytes / sizeof(float), 1e-30f);
    const std::function<void()> ways[] = {
        [&] { GloosRing(); },
        [&] { Reduce(*flat_); },
        [&] { Reduce(*levels_); },
        [&] { Reduce(*pieces_); },
    };
    std::vector<double> best(std::size(ways), 1e30);
    for (int round = -1; round < kRounds; ++round) {  // one to warm up
      for (size_t way = 0; way < std::size(ways); ++way) {
        const double seconds = Timed(ways[way]);
        if (round >= 0) best[way] = std::min(best[way], seconds);
      }
    }
    if (rank_ == 0) Print(bytes, best);
  }

 private:
  static std::unique_ptr<Communicator> Made(
      absl::StatusOr<std::unique_ptr<Communicator>> made) {
    CHECK_OK(made.status());
    return *std::move(made);
  }

  CommunicatorSeat Seat(const std::string& name, SharedStore& store) const {
    CommunicatorSeat seat;
    seat.group.name = name;
    for (int i = 0; i < network_.ranks(); ++i) seat.group.ranks.push_back(i);
    seat.rank = rank_;
    seat.store = &store;
    seat.host = absl::StrCat("10.78.0.", rank_ + 1);
    return seat;
  }

  // In pieces, as each of these sizes wants them; none: whole.
  Group GroupOverLevels(const std::vector<int64_t>& sizes) const {
    Group group;
    group.set_name("levels");
    Group::Carrier& carrier = *group.add_carriers();
    carrier.set_backend("gloo");
    int stride = 1;
    for (const int size : network_.sizes) {
      Group::Level& level = *group.add_levels();
      level.set_size(size);
      level.set_stride(stride);
      carrier.add_levels()->add_backends("gloo");
      stride *= size;
    }
    Group::Way way;
    way.set_collective(ALL_REDUCE);
    const auto steps =
        StepsOver(ALL_REDUCE, static_cast<int>(network_.sizes.size()));
    CHECK_OK(steps.status());
    way.mutable_steps()->Add(steps->begin(), steps->end());
    if (sizes.empty()) *group.add_ways() = way;
    for (const int64_t bytes : sizes) {
      way.set_bytes_min(bytes);
      way.set_pieces(PiecesFor(network_, bytes));
      *group.add_ways() = way;
    }
    return group;
  }

  double Timed(const std::function<void()>& call) {
    meeting_.Wait();
    const int64_t start = clock_.MonotonicNanos();
    call();
    meeting_.Wait();
    return (clock_.MonotonicNanos() - start) * 1e-9;
  }

  void Reduce(Communicator& communicator) {
    CHECK_OK(communicator.AllReduce(CommBuffer::Of(absl::MakeSpan(values_)),
                                    ReduceOp::kSum,
                                    {.timeout = absl::Minutes(5)}));
  }

  void GloosRing() {
    ::gloo::AllreduceOptions options(ring_);
    options.setAlgorithm(::gloo::AllreduceOptions::Algorithm::RING);
    options.setOutput(values_.data(), values_.size());
    options.setReduceFunction(
        static_cast<void (*)(void*, const void*, const void*, size_t)>(
            &::gloo::sum<float>));
    options.setTimeout(std::chrono::minutes(5));
    ::gloo::allreduce(options);
  }

  void Print(int64_t bytes, const std::vector<double>& best) const {
    const double bound = Bound(network_, bytes);
    const int pieces = PiecesFor(network_, bytes);
    const double ring = OfRing(network_, bytes);
    std::printf(
        "%4ld MiB  %8.1f  %8.1f  %8.1f  %8.1f ms in %2d   bound %8.1f ms: "
        "%.2f, %.2f of it   %.2f, %.2f times as fast as the ring, %.2f, %.2f "
        "by the formula\n",
        static_cast<long>(bytes >> 20), best[0] * 1e3, best[1] * 1e3,
        best[2] * 1e3, best[3] * 1e3, pieces, bound * 1e3, bound / best[2],
        bound / best[3], best[0] / best[2], best[0] / best[3],
        ring / OverLevels(network_, bytes),
        ring / InPieces(network_, bytes, pieces));
    std::fflush(stdout);
  }

  const Network& network_;
  const int rank_;
  Meeting& meeting_;
  const RealClock clock_;
  std::unique_ptr<Communicator> flat_;
  std::unique_ptr<Communicator> levels_;
  std::unique_ptr<Communicator> pieces_;
  std::shared_ptr<::gloo::Context> ring_;
  std::vector<float> values_;
};

void Run(const Network& network, const std::vector<int64_t>& sizes) {
  std::printf(
      "%s ranks, %s Mbit/s\n"
      "    size      ring      flat    levels    pieces\n",
      absl::StrJoin(network.sizes, " x ").c_str(),
      absl::StrJoin(network.bytes_second, ", ",
                    [](std::string* out, double rate) {
                      absl::StrAppend(out, rate * 8e-6);
                    })
          .c_str());
  std::fflush(stdout);
  SharedStore store;
  void* const memory = mmap(nullptr, sizeof(Meeting), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(memory != MAP_FAILED);
  auto* const meeting = new (memory) Meeting(network.ranks());
  for (int rank = 0; rank < network.ranks(); ++rank) {
    if (fork() != 0) continue;
    Enter(absl::StrCat(network.prefix, rank));
    Bench bench(network, rank, store, *meeting, sizes);
    for (const int64_t size : sizes) bench.Run(size);
    meeting->Wait();  // nobody hangs up while others still talk
    std::fflush(stdout);
    _exit(0);
  }
}

}  // namespace
}  // namespace troupe

int main(int count, char** arguments) {
  if (count < 4) {
    std::fprintf(stderr,
                 "network_bench PREFIX SIZES RATES [MIB...]; "
                 "see network_bench.sh, which calls it\n");
    return 2;
  }
  troupe::Network network = {.prefix = arguments[1]};
  for (const auto size : absl::StrSplit(arguments[2], 'x')) {
    CHECK(absl::SimpleAtoi(size, &network.sizes.emplace_back())) << size;
  }
  for (const auto rate : absl::StrSplit(arguments[3], ',')) {
    double megabits = 0;
    CHECK(absl::SimpleAtod(rate, &megabits)) << rate;
    network.bytes_second.push_back(megabits / 8 * 1e6);
  }
  CHECK_EQ(network.sizes.size(), network.bytes_second.size());
  std::set<int64_t> mebibytes;
  for (int i = 4; i < count; ++i) {
    int64_t size = 0;
    CHECK(absl::SimpleAtoi(arguments[i], &size) && size > 0) << arguments[i];
    mebibytes.insert(size);
  }
  if (mebibytes.empty()) mebibytes = {1, 4, 16, 64};
  std::vector<int64_t> sizes;
  for (const int64_t size : mebibytes) sizes.push_back(size << 20);
  troupe::MachineSpan machine(0);
  troupe::Run(network, sizes);
  int failed = 0;
  int status = 0;
  while (wait(&status) > 0) failed |= status;
  std::printf("%s\n", machine.Line().c_str());
  return failed == 0 ? 0 : 1;
}
