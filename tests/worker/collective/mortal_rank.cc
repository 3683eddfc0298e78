#include "tests/worker/collective/mortal_rank.h"

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "proto/base/check.h"
#include "proto/base/status.h"
#include "proto/base/steady_time.h"
#include "proto/plan/ways.h"
#include "worker/collective/create_communicator.h"
#include "worker/collective/level_steps.h"
#include "worker/collective/levels.h"

namespace troupe {
namespace {

constexpr absl::Duration kLong = absl::Seconds(60);

// One communicator of the rank, until it dies.
class Mortal final : public Communicator {
 public:
  explicit Mortal(std::unique_ptr<Communicator> inner)
      : Communicator(inner->group(), inner->rank()), inner_(std::move(inner)) {}

  // Before each call; an error is what the call returns.
  std::function<absl::Status()> before;

  // REQUIRES that nobody is inside a call. Not under the lock: a communicator
  // that goes waits for the watch, whose thread may ask this one.
  void Die() {
    std::unique_ptr<Communicator> dying;  // outlives the lock
    absl::MutexLock lock(&mutex_);
    dying.swap(inner_);
  }
  bool WaitForCalls(int calls) {
    absl::MutexLock lock(&done_mutex_);
    const auto enough = [&]() ABSL_SHARED_LOCKS_REQUIRED(done_mutex_) {
      return done_ >= calls;
    };
    return done_mutex_.AwaitWithTimeout(absl::Condition(&enough), kLong);
  }

  uint64_t sent_bytes() const override { return 0; }
  bool SeesFailure() override {
    absl::ReaderMutexLock lock(&mutex_);
    return inner_ == nullptr || inner_->SeesFailure();
  }
  void AbortCall(const absl::Status& why) override {
    absl::ReaderMutexLock lock(&mutex_);
    if (inner_ != nullptr) inner_->AbortCall(why);
  }

 private:
  template <typename Body>
  absl::Status Do(const Body& body) {
    if (before != nullptr) RETURN_IF_ERROR(before());
    absl::Status status;
    {
      absl::ReaderMutexLock lock(&mutex_);
      if (inner_ == nullptr) return absl::UnavailableError("this rank is dead");
      status = body(*inner_);
    }
    absl::MutexLock lock(&done_mutex_);
    ++done_;
    return status;
  }
  static CommOptions OptionsOf(const Call& call) {
    return {.name = std::string(call.name),
            .timeout = call.deadline - SteadyNow()};
  }

  absl::Status DoAllReduce(const CommBlocks& data, ReduceOp op,
                           const Call& call) override {
    return Do([&](Communicator& inner) {
      return inner.AllReduce(data.whole, op, OptionsOf(call));
    });
  }
  absl::Status DoReduceScatter(const CommBlocks& send,
                               const CommBuffer& receive, ReduceOp op,
                               const Call& call) override {
    return Do([&](Communicator& inner) {
      return inner.ReduceScatter({.send = send.whole, .receive = receive}, op,
                                 OptionsOf(call));
    });
  }
  absl::Status DoAllGather(const CommBuffer& send, const CommBlocks& receive,
                           const Call& call) override {
    return Do([&](Communicator& inner) {
      return inner.AllGather({.send = send, .receive = receive.whole},
                             OptionsOf(call));
    });
  }
  absl::Status DoBarrier(const Call& call) override {
    return Do(
        [&](Communicator& inner) { return inner.Barrier(OptionsOf(call)); });
  }
  void DoAbort(const absl::Status& why) override {
    absl::ReaderMutexLock lock(&mutex_);
    if (inner_ != nullptr) inner_->Abort(why);
  }

  static absl::Status No() { return absl::UnimplementedError("not needed"); }
  absl::Status DoReduce(const CommBlocks&, int, ReduceOp,
                        const Call&) override {
    return No();
  }
  absl::Status DoBroadcast(CommBuffer, int, const Call&) override {
    return No();
  }
  absl::Status DoAllToAll(const CommBlocks&, const CommBlocks&,
                          const Call&) override {
    return No();
  }
  absl::Status DoSend(CommBuffer, int, const Call&) override { return No(); }
  absl::Status DoRecv(CommBuffer, int, const Call&) override { return No(); }
  absl::Status DoShift(const ShiftBuffers&, const Call&) override {
    return No();
  }

  absl::Mutex mutex_;
  std::unique_ptr<Communicator> inner_ ABSL_GUARDED_BY(mutex_);
  absl::Mutex done_mutex_;
  int done_ ABSL_GUARDED_BY(done_mutex_) = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Communicator>> CreateMortal(
    const Group& group, const Death& death, const CommunicatorSeat& seat) {
  CHECK_EQ(group.levels_size(), 2);
  const Group::Carrier& carrier = group.carriers(0);
  const std::shared_ptr<Watch> watch = std::make_shared<Watch>();
  std::vector<Mortal*> mortals;
  const auto create = [&](const std::string& backend, CommunicatorSeat of)
      -> absl::StatusOr<std::unique_ptr<Communicator>> {
    of.watch = watch;
    ASSIGN_OR_RETURN(auto inner, CreateCommunicator(backend, of));
    auto mortal = std::make_unique<Mortal>(std::move(inner));
    mortals.push_back(mortal.get());
    return mortal;
  };
  LevelParts parts;
  ASSIGN_OR_RETURN(parts.flat, create(carrier.backend(), seat));
  for (int l = 0; l < 2; ++l) {
    const Group::Level& level = group.levels(l);
    CommunicatorSeat of_level = seat;
    of_level.group.name =
        absl::StrCat(seat.group.name, "/", l, ".", NumberOn(level, seat.rank));
    of_level.group.ranks.clear();
    for (const int member : MembersOn(level, seat.rank)) {
      of_level.group.ranks.push_back(seat.group.ranks[member]);
    }
    of_level.rank = PlaceOn(level, seat.rank);
    of_level.in_order = level.in_order();
    parts.levels.emplace_back();
    ASSIGN_OR_RETURN(
        parts.levels.back(),
        create(BackendOn(carrier, l, NumberOn(level, seat.rank)), of_level));
  }
  mortals[2]->before = [mortals, death, call = 0]() mutable -> absl::Status {
    if (call++ != death.call) return absl::OkStatus();
    CHECK(mortals[1]->WaitForCalls(death.calls_below))
        << "the first level has not ended " << death.calls_below << " calls";
    for (Mortal* const mortal : mortals) mortal->Die();
    return absl::UnavailableError("this rank died");
  };
  return NewLevelsCommunicator(group, std::move(parts), watch);
}

}  // namespace troupe
