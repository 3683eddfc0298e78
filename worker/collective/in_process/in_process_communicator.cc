#include "worker/collective/in_process/in_process_communicator.h"

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "proto/base/steady_time.h"
#include "worker/collective/in_process/board.h"
#include "worker/collective/reduce.h"

namespace troupe {
namespace {

class InProcessCommunicator final : public Communicator {
 public:
  InProcessCommunicator(const CommunicatorSeat& seat,
                        std::shared_ptr<Board> board)
      : Communicator(seat.group, seat.rank), board_(std::move(board)) {}
  ~InProcessCommunicator() override { board_->Leave(rank()); }

  uint64_t sent_bytes() const override { return board_->given_bytes(rank()); }
  bool SeesFailure() override { return board_->HasFailed(); }

  absl::Status Join(absl::Duration timeout) {
    const absl::Time now = SteadyNow();
    return DoBarrier({"join", now, now + timeout});
  }

 private:
  absl::Status Result(const Verdict& outcome, const Call& call) {
    if (outcome.ok()) return absl::OkStatus();
    {
      absl::MutexLock lock(&mutex_);
      if (!aborted_.ok()) {
        return absl::CancelledError(
            absl::StrCat("aborted: ", aborted_.message()));
      }
    }
    return PeerError(outcome, call);
  }

  // Puts up `buffer`; `whole` is what all members have alike.
  absl::Status Enter(const CommBuffer& buffer, const CommBuffer& whole,
                     const Call& call) {
    return Result(
        board_->Enter(rank(),
                      {absl::StrCat(call.operation, " of ", whole.elements, " ",
                                    DTypeName(whole.element)),
                       buffer},
                      call.deadline),
        call);
  }
  absl::Status Enter(const CommBuffer& buffer, const Call& call) {
    return Enter(buffer, buffer, call);
  }

  // Block `index` of what `member` has put up, which is cut as `blocks` is.
  CommBuffer BlockAt(int member, const CommBlocks& blocks, int index) const {
    const ElementRange& range = blocks.ranges[index];
    return board_->BufferOf(member).Slice(range.begin, range.end);
  }

  void ReduceOwnBlock(const CommBlocks& blocks, const CommBuffer& into,
                      ReduceOp op) {
    std::vector<CommBuffer> rows(size());
    for (int i = 0; i < size(); ++i) {
      rows[i] = BlockAt(i, blocks, rank());
      if (i != rank()) board_->CountGiven(i, rows[i].bytes());
    }
    ReduceRows(op, into, rows);
  }

  // What `member` has put up.
  void CopyFrom(int member, const CommBuffer& from, const CommBuffer& to) {
    if (from.elements > 0) std::memcpy(to.data, from.data, from.bytes());
    if (member != rank()) board_->CountGiven(member, from.bytes());
  }

  absl::Status DoAllReduce(const CommBlocks& data, ReduceOp op,
                           const Call& call) override {
    RETURN_IF_ERROR(Enter(data.whole, call));
    ReduceOwnBlock(data, data.Of(rank()), op);
    board_->NextPhase(rank());
    for (int i = 0; i < size(); ++i) {
      if (i != rank()) CopyFrom(i, BlockAt(i, data, i), data.Of(i));
    }
    board_->NextPhase(rank());
    return absl::OkStatus();
  }

  absl::Status DoReduceScatter(const CommBlocks& send,
                               const CommBuffer& receive, ReduceOp op,
                               const Call& call) override {
    RETURN_IF_ERROR(Enter(send.whole, call));
    ReduceOwnBlock(send, receive, op);
    board_->NextPhase(rank());
    return absl::OkStatus();
  }

  absl::Status DoAllGather(const CommBuffer& send, const CommBlocks& receive,
                           const Call& call) override {
    RETURN_IF_ERROR(Enter(send, receive.whole, call));
    RETURN_IF_ERROR(CopyToSelf(send, receive.Of(rank())));
    for (int i = 0; i < size(); ++i) {
      if (i != rank()) CopyFrom(i, board_->BufferOf(i), receive.Of(i));
    }
    board_->NextPhase(rank());
    return absl::OkStatus();
  }

  absl::Status DoReduce(const CommBlocks& data, int root, ReduceOp op,
                        const Call& call) override {
    RETURN_IF_ERROR(Enter(data.whole, call));
    ReduceOwnBlock(data, data.Of(rank()), op);
    board_->NextPhase(rank());
    for (int i = 0; i < size() && rank() == root; ++i) {
      if (i != root) CopyFrom(i, BlockAt(i, data, i), data.Of(i));
    }
    board_->NextPhase(rank());
    return absl::OkStatus();
  }

  absl::Status DoBroadcast(CommBuffer data, int root,
                           const Call& call) override {
    RETURN_IF_ERROR(Enter(data, call));
    if (rank() != root) {
      CopyFrom(root, board_->BufferOf(root), data);
    }
    board_->NextPhase(rank());
    return absl::OkStatus();
  }

  absl::Status DoAllToAll(const CommBlocks& send, const CommBlocks& receive,
                          const Call& call) override {
    RETURN_IF_ERROR(
        Result(board_->Enter(rank(),
                             {absl::StrCat(call.operation, " of ",
                                           DTypeName(send.whole.element)),
                              send.whole, send.ranges, receive.ranges},
                             call.deadline),
               call));
    const Verdict agreed = CompareBlocks();
    for (int i = 0; i < size() && agreed.ok(); ++i) {
      const Board::Entry from = board_->EntryOf(i);
      CopyFrom(i, CommBlocks{from.buffer, from.gives}.Of(rank()),
               receive.Of(i));
    }
    board_->NextPhase(rank());
    if (!agreed.ok()) board_->Fail(agreed);
    return Result(agreed, call);
  }

  // Whether each receives what the other sends: all ranks find the same.
  Verdict CompareBlocks() const {
    std::vector<Board::Entry> entries;
    for (int i = 0; i < size(); ++i) entries.push_back(board_->EntryOf(i));
    for (int from = 0; from < size(); ++from) {
      for (int to = 0; to < size(); ++to) {
        const int64_t given = entries[from].gives[to].size();
        const int64_t taken = entries[to].takes[from].size();
        if (given == taken) continue;
        return {absl::StatusCode::kInternal, from,
                absl::StrCat("sends ", given, " elements to rank ",
                             group().ranks[to], ", which expects ", taken)};
      }
    }
    return {};
  }

  absl::Status DoSend(CommBuffer data, int peer, const Call& call) override {
    return Result(
        board_->Send({.sender = rank(), .receiver = peer}, data, call.deadline),
        call);
  }

  absl::Status DoRecv(CommBuffer data, int peer, const Call& call) override {
    return Result(
        board_->Recv({.sender = peer, .receiver = rank()}, data, call.deadline),
        call);
  }

  absl::Status DoShift(const ShiftBuffers& buffers, const Call& call) override {
    return Result(
        board_->Cross({.out = {.sender = rank(), .receiver = buffers.to},
                       .send = buffers.send,
                       .in = {.sender = buffers.from, .receiver = rank()},
                       .receive = buffers.receive},
                      call.deadline),
        call);
  }

  absl::Status DoBarrier(const Call& call) override { return Enter({}, call); }

  void DoAbort(const absl::Status& why) override {
    {
      absl::MutexLock lock(&mutex_);
      aborted_ = why;
    }
    board_->Fail({absl::StatusCode::kUnavailable, rank(),
                  absl::StrCat("aborted: ", why.message())});
  }

  const std::shared_ptr<Board> board_;
  absl::Mutex mutex_;
  absl::Status aborted_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

absl::StatusOr<std::unique_ptr<Communicator>> CreateInProcess(
    const CommunicatorSeat& seat) {
  const int ranks = static_cast<int>(seat.group.ranks.size());
  const absl::StatusOr<std::shared_ptr<void>> board =
      seat.store->Share(absl::StrCat(seat.group.name, "/in_process"),
                        [ranks] { return std::make_shared<Board>(ranks); });
  if (!board.ok()) {
    return Annotate(board.status(), absl::StrCat("group ", seat.group.name));
  }
  auto communicator = std::make_unique<InProcessCommunicator>(
      seat, std::static_pointer_cast<Board>(*board));
  const JoinAbort::Interrupt interrupt(
      seat.abort, [joining = communicator.get()](const absl::Status& why) {
        joining->Abort(why);
      });
  RETURN_IF_ERROR(Annotate(communicator->Join(seat.timeout),
                           absl::StrCat("group ", seat.group.name, ": join")));
  return communicator;
}

}  // namespace troupe
