#include "tests/worker/collective/operation_failure_contract.h"

#include <algorithm>
#include <memory>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/mutex.h"
#include "tests/worker/collective/tells.h"

namespace troupe {
namespace {

// Long enough for all that come to be there.
constexpr absl::Duration kShort = absl::Milliseconds(500);
// Longer than any test: a rank that waits so long was not woken.
constexpr absl::Duration kLong = absl::Seconds(100);

// The last of the members is the one that fails. Rank 0 needs it in each
// operation, the others where all need all.
int FailingOf(int ranks) { return ranks - 1; }

// Where members wait for one another before they go: a member that has done its
// part and closes would be missed by those that look for the one to blame.
class End {
 public:
  explicit End(int members) : missing_(members) {}
  void Meet() {
    absl::MutexLock lock(&mutex_);
    --missing_;
    const auto all = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
      return missing_ == 0;
    };
    mutex_.Await(absl::Condition(&all));
  }

 private:
  absl::Mutex mutex_;
  int missing_ ABSL_GUARDED_BY(mutex_);
};

struct Operation {
  const char* name;
  bool all_need_all;
  // On `size` elements for each member.
  absl::Status (*run)(Communicator& communicator, int64_t size,
                      const CommOptions& options);
};

CommBuffer View(std::vector<float>& values) {
  return CommBuffer::Of(absl::MakeSpan(values));
}

absl::Status RunAllReduce(Communicator& communicator, int64_t size,
                          const CommOptions& options) {
  std::vector<float> values(communicator.size() * size, 1.0f);
  return communicator.AllReduce(View(values), ReduceOp::kSum, options);
}

absl::Status RunReduceScatter(Communicator& communicator, int64_t size,
                              const CommOptions& options) {
  // Blocks that are not even.
  std::vector<float> values(communicator.size() * size + 1, 1.0f);
  const CommBuffer whole = View(values);
  return communicator.ReduceScatter(
      {.send = whole,
       .receive = communicator.Block(whole, communicator.rank())},
      ReduceOp::kSum, options);
}

absl::Status RunAllGather(Communicator& communicator, int64_t size,
                          const CommOptions& options) {
  std::vector<float> values(communicator.size() * size + 1, 1.0f);
  const CommBuffer whole = View(values);
  return communicator.AllGather(
      {.send = communicator.Block(whole, communicator.rank()),
       .receive = whole},
      options);
}

absl::Status RunReduce(Communicator& communicator, int64_t size,
                       const CommOptions& options) {
  std::vector<float> values(communicator.size() * size, 1.0f);
  return communicator.Reduce(View(values), /*root=*/0, ReduceOp::kSum, options);
}

absl::Status RunBroadcast(Communicator& communicator, int64_t size,
                          const CommOptions& options) {
  std::vector<float> values(communicator.size() * size, 1.0f);
  return communicator.Broadcast(View(values), FailingOf(communicator.size()),
                                options);
}

absl::Status RunAllToAll(Communicator& communicator, int64_t size,
                         const CommOptions& options) {
  std::vector<float> send(communicator.size() * size, 1.0f),
      receive(communicator.size() * size);
  return communicator.AllToAll({.send = View(send), .receive = View(receive)},
                               options);
}

// To each rank as often `size` as its number says, to the first nothing.
absl::Status RunUnevenAllToAll(Communicator& communicator, int64_t size,
                               const CommOptions& options) {
  std::vector<int64_t> out, in;
  int64_t sends = 0;
  for (int peer = 0; peer < communicator.size(); ++peer) {
    out.push_back((peer + communicator.rank()) * size);
    in.push_back(out.back());
    sends += out.back();
  }
  std::vector<float> send(sends, 1.0f), receive(sends);
  const std::vector<ElementRange> gives = RangesOfSizes(out);
  const std::vector<ElementRange> takes = RangesOfSizes(in);
  return communicator.AllToAll({.send = View(send),
                                .receive = View(receive),
                                .send_ranges = gives,
                                .receive_ranges = takes},
                               options);
}

absl::Status RunShift(Communicator& communicator, int64_t size,
                      const CommOptions& options) {
  std::vector<float> send(size, 1.0f), receive(size);
  const int me = communicator.rank();
  return communicator.Shift(
      {.send = View(send),
       .to = (me + 1) % communicator.size(),
       .receive = View(receive),
       .from = (me + communicator.size() - 1) % communicator.size()},
      options);
}

absl::Status RunBarrier(Communicator& communicator, int64_t size,
                        const CommOptions& options) {
  return communicator.Barrier(options);
}

constexpr Operation kOperations[] = {
    {"all-reduce", true, RunAllReduce},
    {"reduce-scatter", true, RunReduceScatter},
    {"all-gather", true, RunAllGather},
    {"reduce", false, RunReduce},
    {"broadcast", true, RunBroadcast},
    {"all-to-all", true, RunAllToAll},
    {"all-to-all", true, RunUnevenAllToAll},
    {"shift", false, RunShift},
    {"barrier", true, RunBarrier},
};

// Exchanged directly, and in a ring.
const int64_t kSizes[] = {10, 200'000};

std::string RankWords(int index) {
  return absl::StrCat("rank ", GlobalRank(index), " ");
}

// Whether this rank cannot end the operation without the last one. One that can
// may fail all the same, as those that need the last one do.
bool Needs(const Operation& operation, int rank) {
  return operation.all_need_all || rank == 0;
}

// What it says where it fails, and that it does where it must.
void ExpectFailure(const Operation& operation, int rank,
                   const absl::Status& status, absl::StatusCode code,
                   const std::string& culprit) {
  if (status.ok()) {
    EXPECT_FALSE(Needs(operation, rank)) << operation.name;
    return;
  }
  EXPECT_TRUE(Tells(status, code,
                    {absl::StrCat(operation.name, " of block.3"), culprit}));
}

}  // namespace

TEST_P(OperationFailureContract, NamesThePeerThatDoesNotCome) {
  const int failing = FailingOf(GetParam().ranks);
  const absl::Duration timeout = kShort * std::max(1, GetParam().patience / 2);
  for (const Operation& operation : kOperations) {
    End end(GetParam().ranks);
    Together(GetParam(), [&](Communicator& communicator) {
      ASSERT_EQ(communicator.Barrier({}), absl::OkStatus());
      if (communicator.rank() == failing) return end.Meet();
      const absl::Status status = operation.run(
          communicator, kSizes[0], {.name = "block.3", .timeout = timeout});
      ExpectFailure(operation, communicator.rank(), status,
                    absl::StatusCode::kDeadlineExceeded, RankWords(failing));
      end.Meet();
    });
  }
}

TEST_P(OperationFailureContract, NamesThePeerThatDied) {
  const int failing = FailingOf(GetParam().ranks);
  for (const Operation& operation : kOperations) {
    for (const int64_t size : kSizes) {
      absl::BlockingCounter met(GetParam().ranks);
      End end(GetParam().ranks - 1);
      TogetherOwning(GetParam(), [&](std::unique_ptr<Communicator> mine) {
        ASSERT_EQ(mine->Barrier({}), absl::OkStatus());
        met.DecrementCount();
        if (mine->rank() == failing) {
          met.Wait();
          return;  // destroys it
        }
        const absl::Status status =
            operation.run(*mine, size, {.name = "block.3", .timeout = kLong});
        ExpectFailure(operation, mine->rank(), status,
                      absl::StatusCode::kUnavailable, RankWords(failing));
        end.Meet();
      });
    }
  }
}

TEST_P(OperationFailureContract, AnAbortEndsItHereAndAtThePeers) {
  const int failing = FailingOf(GetParam().ranks);
  for (const Operation& operation : kOperations) {
    absl::BlockingCounter met(GetParam().ranks);
    End end(GetParam().ranks);
    Together(GetParam(), [&](Communicator& communicator) {
      ASSERT_EQ(communicator.Barrier({}), absl::OkStatus());
      met.DecrementCount();  // an abort would fail those still in the barrier
      if (communicator.rank() == failing) return end.Meet();
      std::thread aborter;
      if (communicator.rank() == 0) {
        aborter = std::thread([&] {
          met.Wait();
          communicator.Abort(absl::InternalError("out of paper"));
        });
      }
      const absl::Status status = operation.run(
          communicator, kSizes[1], {.name = "block.3", .timeout = kLong});
      if (communicator.rank() == 0) {
        EXPECT_TRUE(Tells(status, absl::StatusCode::kCancelled,
                          {"aborted: out of paper"}));
        aborter.join();
      } else {
        ExpectFailure(operation, communicator.rank(), status,
                      absl::StatusCode::kUnavailable,
                      absl::StrCat(RankWords(0), "aborted: out of paper"));
      }
      end.Meet();
    });
  }
}

}  // namespace troupe
