// How LevelSteps ends, with communicators that do as the test says: so that a
// lane is known to be inside a call, or just before one.
#include "worker/collective/level_steps.h"

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "proto/base/steady_time.h"
#include "scheduler/collectives/steps_over.h"

namespace troupe {
namespace {

// Longer than anything here takes that works.
constexpr absl::Duration kNever = absl::Seconds(60);
constexpr int kPiecesOfWay = 4;

absl::Status WaitFor(absl::Notification& notification, const char* what) {
  return notification.WaitForNotificationWithTimeout(kNever)
             ? absl::OkStatus()
             : absl::DeadlineExceededError(what);
}

// Of two members. A Recv waits until it is aborted; a barrier says what it is
// told to say. As over TCP, AbortCall ends a call in progress only.
class ScriptedCommunicator final : public Communicator {
 public:
  explicit ScriptedCommunicator(const std::string& name)
      : Communicator({name, {7, 10}}, 0) {}

  absl::Notification inside;   // of a Recv
  absl::Notification aborted;  // for good
  absl::Status barrier;        // before the first call
  std::atomic<bool> fails = false;
  int barriers() const {
    absl::MutexLock lock(&mutex_);
    return barriers_;
  }
  int calls() const {
    absl::MutexLock lock(&mutex_);
    return calls_;
  }

  uint64_t sent_bytes() const override { return 0; }
  bool SeesFailure() override { return fails; }
  void AbortCall(const absl::Status& why) override {
    absl::MutexLock lock(&mutex_);
    if (in_call_ && ended_.ok()) ended_ = why;
  }

 private:
  absl::Status DoRecv(CommBuffer, int, const Call& call) override {
    absl::MutexLock lock(&mutex_);
    ++calls_;
    in_call_ = true;
    inside.Notify();
    const auto over = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
      return !ended_.ok();
    };
    mutex_.AwaitWithTimeout(absl::Condition(&over), kNever);
    in_call_ = false;
    return ended_.ok() ? absl::DeadlineExceededError("nobody ended the call")
                       : absl::CancelledError(ended_.message());
  }
  absl::Status DoBarrier(const Call&) override {
    absl::MutexLock lock(&mutex_);
    ++barriers_;
    return barrier;
  }
  void DoAbort(const absl::Status& why) override {
    {
      absl::MutexLock lock(&mutex_);
      if (ended_.ok()) ended_ = why;
    }
    aborted.Notify();
  }

  static absl::Status No() { return absl::UnimplementedError("not scripted"); }
  absl::Status DoAllReduce(const CommBlocks&, ReduceOp, const Call&) override {
    return No();
  }
  absl::Status DoReduceScatter(const CommBlocks&, const CommBuffer&, ReduceOp,
                               const Call&) override {
    return No();
  }
  absl::Status DoAllGather(const CommBuffer&, const CommBlocks&,
                           const Call&) override {
    return No();
  }
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
  absl::Status DoShift(const ShiftBuffers&, const Call&) override {
    return No();
  }

  mutable absl::Mutex mutex_;
  int barriers_ ABSL_GUARDED_BY(mutex_) = 0;
  int calls_ ABSL_GUARDED_BY(mutex_) = 0;
  bool in_call_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status ended_ ABSL_GUARDED_BY(mutex_);
};

// Two levels that work at once, one rank's view of them.
class TwoLanes {
 public:
  TwoLanes() {
    for (int l = 0; l < 2; ++l) {
      Group::Level& level = *group_.add_levels();
      level.set_size(2);
      level.set_stride(1 + l);
    }
    Group::Way& way = *group_.add_ways();
    way.set_collective(ALL_REDUCE);
    way.set_pieces(kPiecesOfWay);
    const auto steps = StepsOver(ALL_REDUCE, 2);
    way.mutable_steps()->Add(steps->begin(), steps->end());
    LevelParts parts;
    auto flat_part = std::make_unique<ScriptedCommunicator>("flat");
    flat = flat_part.get();
    parts.flat = std::move(flat_part);
    for (ScriptedCommunicator*& level : levels) {
      auto part = std::make_unique<ScriptedCommunicator>("level");
      level = part.get();
      parts.levels.push_back(std::move(part));
    }
    steps_ = std::make_unique<LevelSteps>(group_, std::move(parts),
                                          std::make_shared<Watch>());
  }

  LevelSteps& steps() { return *steps_; }

  // Both lanes at their second step at the earliest: the first piece on the
  // second level, the second piece on the first one.
  absl::Status Run(const LevelSteps::Execute& first,
                   const LevelSteps::Execute& second) {
    const absl::Time now = SteadyNow();
    return steps_->Run(
        group_.ways(0), OrderOf(group_.ways(0), kPiecesOfWay),
        {.name = "x", .start = now, .deadline = now + 2 * kNever},
        [&](const PieceStep& step) -> absl::Status {
          if (step.piece == 0 && step.index == 0) return absl::OkStatus();
          return step.step.level() == 0 ? first(step) : second(step);
        });
  }

  ScriptedCommunicator* flat = nullptr;
  ScriptedCommunicator* levels[2] = {};

 private:
  Group group_;
  std::unique_ptr<LevelSteps> steps_;
};

// Of a peer that never sends.
absl::Status Receive(const PieceStep& step) {
  char byte = 0;
  return step.level.Recv({&byte, 1, DType::kU8}, 1, step.options);
}

TEST(LevelSteps, ALaneThatFailsEndsTheCallThatAnotherIsIn) {
  TwoLanes lanes;
  const absl::Status status = lanes.Run(
      [&](const PieceStep&) {
        EXPECT_EQ(WaitFor(lanes.levels[1]->inside, "the other lane"),
                  absl::OkStatus());
        return absl::InternalError("out of paper");
      },
      Receive);
  EXPECT_EQ(status, absl::InternalError("out of paper"));
  EXPECT_EQ(lanes.flat->barriers(), 1) << "all members meet, once";
  EXPECT_TRUE(lanes.levels[1]->aborted.HasBeenNotified());
}

TEST(LevelSteps, ALaneThatFailsEndsTheCallThatAnotherHasYetToMake) {
  TwoLanes lanes;
  absl::Notification begun;
  absl::Status second;
  const absl::Status status = lanes.Run(
      [&](const PieceStep&) {
        EXPECT_EQ(WaitFor(begun, "the other lane"), absl::OkStatus());
        return absl::InternalError("out of paper");
      },
      [&](const PieceStep& step) {
        begun.Notify();
        // The step has begun, and its call comes when all is over.
        EXPECT_EQ(WaitFor(lanes.levels[1]->aborted, "the end"),
                  absl::OkStatus());
        second = Receive(step);
        return second;
      });
  EXPECT_EQ(status, absl::InternalError("out of paper"));
  EXPECT_TRUE(absl::IsCancelled(second)) << second;
  EXPECT_EQ(lanes.levels[1]->calls(), 0);
}

TEST(LevelSteps, AnAbortEndsTheCallsOfAllLanes) {
  TwoLanes lanes;
  std::thread aborter([&] {
    for (ScriptedCommunicator* const level : lanes.levels) {
      EXPECT_EQ(WaitFor(level->inside, "a lane"), absl::OkStatus());
    }
    lanes.steps().Abort(absl::InternalError("the job ends"));
  });
  const absl::Status status = lanes.Run(Receive, Receive);
  EXPECT_EQ(status, absl::CancelledError("aborted: the job ends"));
  EXPECT_EQ(lanes.flat->barriers(), 0) << "nobody is to blame";
  for (ScriptedCommunicator* const level : lanes.levels) {
    EXPECT_EQ(level->calls(), 1);
  }
  aborter.join();
}

// The watch finds out that the group has failed while both lanes wait.
TEST(LevelSteps, AFailureThatTheFlatOneSeesEndsTheCallsOfAllLanes) {
  TwoLanes lanes;
  lanes.flat->barrier = absl::UnavailableError("rank 10 died");
  std::thread failing([&] {
    for (ScriptedCommunicator* const level : lanes.levels) {
      EXPECT_EQ(WaitFor(level->inside, "a lane"), absl::OkStatus());
    }
    lanes.flat->fails = true;
  });
  absl::Status ends[2];
  const auto receive = [&](const PieceStep& step) {
    ends[step.step.level()] = Receive(step);
    return ends[step.step.level()];
  };
  const absl::Status status = lanes.Run(receive, receive);
  EXPECT_EQ(status, absl::UnavailableError("rank 10 died"));
  for (const absl::Status& end : ends) {
    EXPECT_TRUE(absl::IsCancelled(end)) << end;
  }
  failing.join();
}

}  // namespace
}  // namespace troupe
