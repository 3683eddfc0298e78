#include "worker/collective/levels.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/mutex.h"
#include "proto/base/status.h"
#include "proto/base/steady_time.h"
#include "proto/plan/ways.h"
#include "worker/collective/level_pieces.h"

namespace troupe {
namespace {

// What is left of an operation's time for the members to find out who is to
// blame, and how long they wait for one another where more is left.
constexpr absl::Duration kInquest = absl::Seconds(2);
constexpr absl::Duration kInquestMax = absl::Seconds(30);
// What a step is aborted with that waits in vain.
constexpr char kEndedElsewhere[] = "another member of the group failed";

// Carriers, one for each group of the name, may be many.
Group LevelsAndWays(const Group& group) {
  Group without;
  *without.mutable_levels() = group.levels();
  *without.mutable_ways() = group.ways();
  return without;
}

std::vector<Group::Step> StepsOf(const Group::Way& way) {
  return {way.steps().begin(), way.steps().end()};
}

class LevelsCommunicator final : public Communicator, private Watched {
 public:
  LevelsCommunicator(const Group& group, LevelParts parts,
                     std::shared_ptr<Watch> watch)
      : Communicator(parts.flat->group(), parts.flat->rank()),
        plan_(LevelsAndWays(group)),
        flat_(std::move(parts.flat)),
        levels_(std::move(parts.levels)),
        watch_(std::move(watch)) {
    watch_->Add(*this);
  }
  ~LevelsCommunicator() override { watch_->Remove(*this); }

  uint64_t sent_bytes() const override {
    uint64_t bytes = flat_->sent_bytes();
    for (const auto& level : levels_) {
      if (level != nullptr) bytes += level->sent_bytes();
    }
    return bytes;
  }
  bool SeesFailure() override { return flat_->SeesFailure(); }

 private:
  using Options = CommOptions;

  static Options OptionsUntil(absl::Time deadline, const Call& call) {
    return {.name = std::string(call.name),
            .timeout = deadline - SteadyNow(),
            .meet = call.meet};
  }
  static Options OptionsOf(const Call& call) {
    return OptionsUntil(call.deadline, call);
  }

  // The steps of an operation.
  class Steps {
   public:
    Steps(LevelsCommunicator& of, const Call& call, absl::Time deadline)
        : of_(of), call_(call), deadline_(deadline) {}

    // `run` on the communicator of the level, which an end of the flat one ends
    // too.
    template <typename Run>
    absl::Status On(int level, const Run& run) {
      Communicator& communicator = *of_.levels_[level];
      {
        absl::MutexLock lock(&of_.mutex_);
        if (!of_.aborted_.ok()) return of_.aborted_;
        of_.running_ = {&communicator, deadline_};
      }
      // Where there is no deadline, the flat one is looked at all the same.
      of_.watch_->Expect(deadline_);
      const absl::Status status =
          run(communicator, OptionsUntil(deadline_, call_));
      absl::MutexLock lock(&of_.mutex_);
      of_.running_ = {};
      return status;
    }

   private:
    LevelsCommunicator& of_;
    const Call& call_;
    const absl::Time deadline_;
  };

  template <typename Body>
  absl::Status InSteps(const Call& call, const Body& body) {
    const absl::Duration left = call.deadline - SteadyNow();
    Steps steps(*this, call, call.deadline - std::min(left / 4, kInquest));
    const absl::Status status = body(steps);
    return status.ok() ? status : Blamed(status, call);
  }

  absl::Status Blamed(const absl::Status& failure, const Call& call) {
    {
      absl::MutexLock lock(&mutex_);
      if (!aborted_.ok()) {
        return absl::CancelledError(
            absl::StrCat("aborted: ", aborted_.message()));
      }
    }
    const absl::Duration patience =
        std::clamp((call.deadline - call.start) / 10, kInquest, kInquestMax);
    const absl::Time end = std::min(call.deadline, SteadyNow() + patience);
    const absl::Status met = flat_->Barrier(OptionsUntil(end, call));
    if (met.ok()) {
      return absl::IsDeadlineExceeded(failure) ? AllCameLate(call) : failure;
    }
    // Who knows nothing of a broken connection need not come in time.
    if (absl::IsUnavailable(failure) && absl::IsDeadlineExceeded(met) &&
        !absl::StrContains(failure.message(), kEndedElsewhere)) {
      return failure;
    }
    // As if the operation itself had said so.
    absl::string_view message = met.message();
    absl::ConsumePrefix(
        &message,
        absl::StrCat("group ", group().name, ": barrier",
                     call.name.empty() ? "" : " of ", call.name, ": "));
    absl::Status blamed(met.code(), message);
    met.ForEachPayload([&](absl::string_view url, const absl::Cord& payload) {
      blamed.SetPayload(url, payload);
    });
    return blamed;
  }

  // The step blames who was still waiting for another member, who has come now.
  absl::Status AllCameLate(const Call& call) const {
    return absl::DeadlineExceededError(
        absl::StrCat("all members came, but some too late (rank ",
                     group().ranks[rank()], " waited ",
                     absl::FormatDuration(absl::Trunc(SteadyNow() - call.start,
                                                      absl::Milliseconds(1))),
                     ")"));
  }

  int PlaceOf(int member, int level) const {
    return PlaceOn(plan_.levels(level), member);
  }

  absl::Status DoAllReduce(const CommBlocks& data, ReduceOp op,
                           const Call& call) override {
    const Group::Way* const way = WayFor(ALL_REDUCE, data.whole);
    if (way == nullptr) {
      return flat_->AllReduce(data.whole, op, OptionsOf(call));
    }
    return InSteps(call, [&](Steps& steps) -> absl::Status {
      std::vector<CommBuffer> wholes;  // that pieces were cut from
      CommBuffer part = data.whole;
      for (const Group::Step& step : way->steps()) {
        RETURN_IF_ERROR(steps.On(
            step.level(), [&](Communicator& level, const Options& options) {
              return ReduceStep(step, op, level, options, wholes, part);
            }));
      }
      return absl::OkStatus();
    });
  }

  static absl::Status ReduceStep(const Group::Step& step, ReduceOp op,
                                 Communicator& level, const Options& options,
                                 std::vector<CommBuffer>& wholes,
                                 CommBuffer& part) {
    switch (step.collective()) {
      case REDUCE_SCATTER: {
        wholes.push_back(part);
        part = level.Block(part, level.rank());
        return level.ReduceScatter({.send = wholes.back(), .receive = part}, op,
                                   options);
      }
      case ALL_GATHER: {
        const CommBuffer own = part;
        part = wholes.back();
        wholes.pop_back();
        return level.AllGather({.send = own, .receive = part}, options);
      }
      default:
        return level.AllReduce(part, op, options);
    }
  }

  // The steps of an all-reduce, with pieces that come together at the root.
  absl::Status DoReduce(const CommBlocks& data, int root, ReduceOp op,
                        const Call& call) override {
    const Group::Way* const way = WayFor(ALL_REDUCE, data.whole);
    if (way == nullptr) {
      return flat_->Reduce(data.whole, root, op, OptionsOf(call));
    }
    return InSteps(call, [&](Steps& steps) -> absl::Status {
      std::vector<CommBuffer> wholes;
      CommBuffer part = data.whole;
      bool needed = true;  // what this rank has: it is the root on all levels
                           // that are done
      for (const Group::Step& step : way->steps()) {
        const int at = PlaceOf(root, step.level());
        RETURN_IF_ERROR(steps.On(
            step.level(),
            [&](Communicator& level, const Options& options) -> absl::Status {
              if (step.collective() == REDUCE_SCATTER) {
                return ReduceStep(step, op, level, options, wholes, part);
              }
              if (step.collective() == ALL_GATHER) {
                part = wholes.back();
                wholes.pop_back();
                if (!needed) return absl::OkStatus();
                RETURN_IF_ERROR(GatherAt(at, part, level, options));
              } else {
                RETURN_IF_ERROR(level.Reduce(part, at, op, options));
              }
              needed = needed && level.rank() == at;
              return absl::OkStatus();
            }));
      }
      return absl::OkStatus();
    });
  }

  static absl::Status GatherAt(int root, const CommBuffer& whole,
                               Communicator& level, const Options& options) {
    if (level.rank() != root) {
      return level.Send(level.Block(whole, level.rank()), root, options);
    }
    for (int member = 0; member < level.size(); ++member) {
      if (member == root) continue;
      RETURN_IF_ERROR(level.Recv(level.Block(whole, member), member, options));
    }
    return absl::OkStatus();
  }

  absl::Status DoReduceScatter(const CommBlocks& send,
                               const CommBuffer& receive, ReduceOp op,
                               const Call& call) override {
    const Group::Way* const way = WayFor(REDUCE_SCATTER, send.whole);
    const BlockExtent shape = ExtentOf(send);
    if (way == nullptr || shape.even == 0) {
      return flat_->ReduceScatter({.send = send.whole,
                                   .receive = receive,
                                   .row_elements = send.row_elements},
                                  op, OptionsOf(call));
    }
    RETURN_IF_ERROR(InSteps(call, [&](Steps& steps) -> absl::Status {
      const std::vector<int64_t> order =
          PackedOrder(plan_, size(), StepsOf(*way));
      const int64_t most = ElementsAtATime(size(), receive.element);
      for (int64_t begin = 0; begin < shape.even; begin += most) {
        const int64_t end = std::min(begin + most, shape.even);
        CommBuffer part = pieces_.For(size() * (end - begin), receive.element);
        for (int member = 0; member < size(); ++member) {
          CopyElements(send.Of(member).Slice(begin, end),
                       PackedBlock(part, order[member], end - begin));
        }
        for (const Group::Step& step : way->steps()) {
          RETURN_IF_ERROR(steps.On(
              step.level(), [&](Communicator& level, const Options& options) {
                const CommBuffer whole = part;
                part = level.Block(whole, level.rank());
                return level.ReduceScatter({.send = whole, .receive = part}, op,
                                           options);
              }));
        }
        CopyElements(part, receive.Slice(begin, end));
      }
      return absl::OkStatus();
    }));
    return ScatterRest(send, shape, receive, op, call);
  }

  // Rows that only the first blocks have: each has one more.
  absl::Status ScatterRest(const CommBlocks& send, const BlockExtent& shape,
                           const CommBuffer& receive, ReduceOp op,
                           const Call& call) {
    return ForRest(send, shape, [&](int64_t begin, int64_t end) {
      const CommBuffer rows =
          pieces_.For(shape.longer * (end - begin), receive.element);
      for (int member = 0; member < shape.longer; ++member) {
        CopyElements(send.Of(member).Slice(begin, end),
                     PackedBlock(rows, member, end - begin));
      }
      const CommBuffer own = flat_->Block(rows, rank(), end - begin);
      RETURN_IF_ERROR(flat_->ReduceScatter(
          {.send = rows, .receive = own, .row_elements = end - begin}, op,
          OptionsOf(call)));
      if (own.elements > 0) CopyElements(own, receive.Slice(begin, end));
      return absl::OkStatus();
    });
  }

  template <typename Move>
  absl::Status ForRest(const CommBlocks& blocks, const BlockExtent& shape,
                       const Move& move) {
    if (shape.longer == 0) return absl::OkStatus();
    const int64_t all = shape.even + blocks.row_elements;
    const int64_t most = ElementsAtATime(shape.longer, blocks.whole.element);
    for (int64_t begin = shape.even; begin < all; begin += most) {
      RETURN_IF_ERROR(move(begin, std::min(begin + most, all)));
    }
    return absl::OkStatus();
  }

  absl::Status DoAllGather(const CommBuffer& send, const CommBlocks& receive,
                           const Call& call) override {
    const Group::Way* const way = WayFor(ALL_GATHER, receive.whole);
    const BlockExtent shape = ExtentOf(receive);
    if (way == nullptr || shape.even == 0) {
      return flat_->AllGather({.send = send,
                               .receive = receive.whole,
                               .row_elements = receive.row_elements},
                              OptionsOf(call));
    }
    RETURN_IF_ERROR(InSteps(call, [&](Steps& steps) -> absl::Status {
      std::vector<Group::Step> last_first = StepsOf(*way);
      std::reverse(last_first.begin(), last_first.end());
      const std::vector<int64_t> order = PackedOrder(plan_, size(), last_first);
      const int64_t most = ElementsAtATime(size(), send.element);
      for (int64_t begin = 0; begin < shape.even; begin += most) {
        const int64_t end = std::min(begin + most, shape.even);
        const CommBuffer packed =
            pieces_.For(size() * (end - begin), send.element);
        CopyElements(send.Slice(begin, end),
                     PackedBlock(packed, order[rank()], end - begin));
        int64_t blocks = 1;  // that are there, around this rank's
        for (const Group::Step& step : way->steps()) {
          RETURN_IF_ERROR(steps.On(step.level(), [&](Communicator& level,
                                                     const Options& options) {
            blocks *= level.size();
            const CommBuffer whole = PackedBlock(packed, order[rank()] / blocks,
                                                 blocks * (end - begin));
            return level.AllGather(
                {.send = level.Block(whole, level.rank()), .receive = whole},
                options);
          }));
        }
        for (int member = 0; member < size(); ++member) {
          CopyElements(PackedBlock(packed, order[member], end - begin),
                       receive.Of(member).Slice(begin, end));
        }
      }
      return absl::OkStatus();
    }));
    return GatherRest(send, receive, shape, call);
  }

  absl::Status GatherRest(const CommBuffer& send, const CommBlocks& receive,
                          const BlockExtent& shape, const Call& call) {
    return ForRest(receive, shape, [&](int64_t begin, int64_t end) {
      const CommBuffer rows =
          pieces_.For(shape.longer * (end - begin), send.element);
      const CommBuffer own = flat_->Block(rows, rank(), end - begin);
      if (own.elements > 0) CopyElements(send.Slice(begin, end), own);
      RETURN_IF_ERROR(flat_->AllGather(
          {.send = own, .receive = rows, .row_elements = end - begin},
          OptionsOf(call)));
      for (int member = 0; member < shape.longer; ++member) {
        CopyElements(PackedBlock(rows, member, end - begin),
                     receive.Of(member).Slice(begin, end));
      }
      return absl::OkStatus();
    });
  }

  absl::Status DoBroadcast(CommBuffer data, int root,
                           const Call& call) override {
    const Group::Way* const way = WayFor(BROADCAST, data);
    if (way == nullptr) return flat_->Broadcast(data, root, OptionsOf(call));
    return InSteps(call, [&](Steps& steps) -> absl::Status {
      for (int s = 0; s < way->steps_size(); ++s) {
        if (!HearsInStep(*way, s, root)) continue;
        const int index = way->steps(s).level();
        RETURN_IF_ERROR(
            steps.On(index, [&](Communicator& level, const Options& options) {
              return level.Broadcast(data, PlaceOf(root, index), options);
            }));
      }
      return absl::OkStatus();
    });
  }

  // On the levels of later steps it is where the root is.
  bool HearsInStep(const Group::Way& way, int step, int root) const {
    for (int s = step + 1; s < way.steps_size(); ++s) {
      const int level = way.steps(s).level();
      if (PlaceOf(rank(), level) != PlaceOf(root, level)) return false;
    }
    return true;
  }

  absl::Status DoAllToAll(const CommBlocks& send, const CommBlocks& receive,
                          const Call& call) override {
    return flat_->AllToAll({.send = send.whole,
                            .receive = receive.whole,
                            .send_ranges = send.ranges,
                            .receive_ranges = receive.ranges},
                           OptionsOf(call));
  }
  absl::Status DoSend(CommBuffer data, int peer, const Call& call) override {
    return flat_->Send(data, peer, OptionsOf(call));
  }
  absl::Status DoRecv(CommBuffer data, int peer, const Call& call) override {
    return flat_->Recv(data, peer, OptionsOf(call));
  }
  absl::Status DoShift(const ShiftBuffers& buffers, const Call& call) override {
    return flat_->Shift(buffers, OptionsOf(call));
  }
  absl::Status DoBarrier(const Call& call) override {
    return flat_->Barrier(OptionsOf(call));
  }

  void DoAbort(const absl::Status& why) override {
    {
      absl::MutexLock lock(&mutex_);
      aborted_ = why;
    }
    // First that by which the others know whom to blame.
    flat_->Abort(why);
    for (const auto& level : levels_) {
      if (level != nullptr) level->Abort(why);
    }
  }

  absl::Time Look() override {
    Running running;
    {
      absl::MutexLock lock(&mutex_);
      running = running_;
    }
    if (running.communicator == nullptr) return absl::InfiniteFuture();
    if (flat_->SeesFailure()) {
      running.communicator->AbortCall(absl::CancelledError(kEndedElsewhere));
    }
    return std::min(running.deadline, SteadyNow() + absl::Hours(1));
  }

  const Group::Way* WayFor(Collective collective,
                           const CommBuffer& whole) const {
    return WayOf(plan_, collective, static_cast<int64_t>(whole.bytes()));
  }

  const Group plan_;
  const std::unique_ptr<Communicator> flat_;
  const std::vector<std::unique_ptr<Communicator>> levels_;
  const std::shared_ptr<Watch> watch_;
  PieceMemory pieces_;

  struct Running {
    Communicator* communicator = nullptr;
    absl::Time deadline;
  };
  absl::Mutex mutex_;
  Running running_ ABSL_GUARDED_BY(mutex_);  // the step in progress
  absl::Status aborted_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

std::unique_ptr<Communicator> NewLevelsCommunicator(
    const Group& group, LevelParts parts, std::shared_ptr<Watch> watch) {
  return std::make_unique<LevelsCommunicator>(group, std::move(parts),
                                              std::move(watch));
}

}  // namespace troupe
