#include "worker/collective/communicator.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/status.h"
#include "proto/base/steady_time.h"

namespace troupe {

Communicator::Communicator(CommGroup group, int rank)
    : group_(std::move(group)), rank_(rank) {
  CHECK(rank >= 0 && rank < size())
      << "rank " << rank << " of group " << group_.name;
}

absl::Status Communicator::Run(
    const char* operation, const CommOptions& options,
    const std::function<absl::Status(const Call&)>& body) {
  {
    absl::MutexLock lock(&mutex_);
    if (!broken_.ok()) return broken_;
  }
  const absl::Time start = SteadyNow();
  const Call call = {.operation = operation,
                     .start = start,
                     .deadline = start + options.timeout,
                     .name = options.name,
                     .meet = options.meet};
  const absl::Status status = body(call);
  if (status.ok()) return status;
  const absl::Status in_call = InCall(status, group_.name, What(call));
  Break(in_call).IgnoreError();
  return in_call;
}

absl::Status Communicator::Break(const absl::Status& status) {
  absl::MutexLock lock(&mutex_);
  if (broken_.ok()) broken_ = status;
  return broken_;
}

absl::Status Communicator::Outcome(const absl::Status& queue) {
  {
    absl::MutexLock lock(&mutex_);
    if (!broken_.ok()) return broken_;
  }
  const absl::Status status = DoOutcome(queue);
  if (status.ok() || status == queue) return status;
  return Break(Annotate(status, absl::StrCat("group ", group_.name)));
}

std::string Communicator::What(const Call& call) {
  return CallWords(call.operation, call.name);
}

void Communicator::Abort(const absl::Status& why) {
  CHECK(!why.ok()) << "an abort needs a reason";
  {
    absl::MutexLock lock(&mutex_);
    if (!broken_.ok()) return;
    broken_ = absl::CancelledError(
        absl::StrCat("group ", group_.name, " was aborted: ", why.message()));
  }
  DoAbort(why);
}

absl::Status Communicator::PeerError(const Verdict& failure,
                                     const Call& call) const {
  return troupe::PeerError({.rank = group_.ranks[failure.peer],
                            .code = failure.code,
                            .what = failure.what,
                            .waiting_rank = group_.ranks[rank_],
                            .waited = SteadyNow() - call.start});
}

CommBuffer Communicator::Block(const CommBuffer& whole, int member,
                               int64_t row_elements) const {
  const ElementRange range =
      BlockOf({whole.elements, row_elements, size()}, member);
  return whole.Slice(range.begin, range.end);
}

CommBlocks Communicator::Cut(const CommBuffer& whole, int64_t row_elements,
                             std::vector<ElementRange>& ranges) const {
  return CutEvenly(whole, {whole.elements, row_elements, size()}, ranges);
}

CommBlocks Communicator::CutBy(absl::Span<const ElementRange> given,
                               const CommBuffer& whole, int64_t row_elements,
                               std::vector<ElementRange>& ranges) const {
  if (given.empty()) return Cut(whole, row_elements, ranges);
  CHECK_EQ(given.size(), static_cast<size_t>(size()));
  int64_t end = 0;
  for (const ElementRange& range : given) {
    CHECK(range.begin == end && range.end >= end)
        << "blocks do not tile the buffer";
    end = range.end;
  }
  CHECK_EQ(end, whole.elements) << "blocks do not tile the buffer";
  ranges.assign(given.begin(), given.end());
  return {.whole = whole,
          .ranges = ranges,
          .row_elements = row_elements,
          .given = true};
}

absl::Status Communicator::AllReduce(CommBuffer data, ReduceOp op,
                                     const CommOptions& options) {
  CHECK(data.element != DType::kU8) << "bytes cannot be reduced";
  return Run("all-reduce", options, [&](const Call& call) {
    if (size() == 1 || data.elements == 0) return absl::OkStatus();
    return DoAllReduce(Cut(data, 1, send_ranges_), op, call);
  });
}

absl::Status Communicator::ReduceScatter(const ReduceScatterBuffers& buffers,
                                         ReduceOp op,
                                         const CommOptions& options) {
  const CommBuffer& send = buffers.send;
  const CommBuffer& receive = buffers.receive;
  CHECK(send.element != DType::kU8) << "bytes cannot be reduced";
  const CommBlocks blocks =
      CutBy(buffers.ranges, send, buffers.row_elements, send_ranges_);
  CheckBlock(receive, blocks.Of(rank_), send);
  return Run("reduce-scatter", options, [&](const Call& call) {
    if (send.elements == 0) return absl::OkStatus();
    if (size() == 1) return CopyToSelf(send, receive);
    return DoReduceScatter(blocks, receive, op, call);
  });
}

absl::Status Communicator::Reduce(CommBuffer data, int root, ReduceOp op,
                                  const CommOptions& options) {
  CHECK(data.element != DType::kU8) << "bytes cannot be reduced";
  CHECK(root >= 0 && root < size()) << "root " << root << " of " << size();
  return Run("reduce", options, [&](const Call& call) {
    if (size() == 1 || data.elements == 0) return absl::OkStatus();
    return DoReduce(Cut(data, 1, send_ranges_), root, op, call);
  });
}

absl::Status Communicator::Reduce(const ReduceBuffers& buffers, int root,
                                  ReduceOp op, const CommOptions& options) {
  CHECK_EQ(buffers.send.elements, buffers.receive.elements);
  CHECK(!Overlap(buffers.send, buffers.receive));
  RETURN_IF_ERROR(Reduce(buffers.send, root, op, options));
  if (rank_ != root) return absl::OkStatus();
  return Run("reduce", options, [&](const Call&) {
    return CopyToSelf(buffers.send, buffers.receive);
  });
}

absl::Status Communicator::AllGather(const AllGatherBuffers& buffers,
                                     const CommOptions& options) {
  const CommBuffer& send = buffers.send;
  const CommBuffer& receive = buffers.receive;
  const CommBlocks blocks =
      CutBy(buffers.ranges, receive, buffers.row_elements, receive_ranges_);
  CheckBlock(send, blocks.Of(rank_), receive);
  return Run("all-gather", options, [&](const Call& call) {
    if (receive.elements == 0) return absl::OkStatus();
    if (size() == 1) return CopyToSelf(send, receive);
    return DoAllGather(send, blocks, call);
  });
}

absl::Status Communicator::Broadcast(CommBuffer data, int root,
                                     const CommOptions& options) {
  CHECK(root >= 0 && root < size()) << "root " << root << " of " << size();
  return Run("broadcast", options, [&](const Call& call) {
    if (size() == 1 || data.elements == 0) return absl::OkStatus();
    return DoBroadcast(data, root, call);
  });
}

absl::Status Communicator::Broadcast(const BroadcastBuffers& buffers, int root,
                                     const CommOptions& options) {
  CHECK_EQ(buffers.send.elements, buffers.receive.elements);
  CHECK(!Overlap(buffers.send, buffers.receive));
  if (rank_ == root) {
    RETURN_IF_ERROR(Run("broadcast", options, [&](const Call&) {
      return CopyToSelf(buffers.send, buffers.receive);
    }));
  }
  return Broadcast(buffers.receive, root, options);
}

absl::Status Communicator::AllToAll(const AllToAllBuffers& buffers,
                                    const CommOptions& options) {
  const CommBuffer& send = buffers.send;
  const CommBuffer& receive = buffers.receive;
  CHECK(send.element == receive.element && !Overlap(send, receive));
  const bool even =
      buffers.send_ranges.empty() && buffers.receive_ranges.empty();
  CommBlocks out = {send};
  CommBlocks in = {receive};
  if (even) {
    CHECK_EQ(send.elements, receive.elements);
    CHECK_EQ(send.elements % size(), 0);
    out = Cut(send, 1, send_ranges_);
    in = Cut(receive, 1, receive_ranges_);
    out.even = in.even = true;
  } else {
    CHECK(buffers.send_ranges.size() == group_.ranks.size() &&
          buffers.receive_ranges.size() == group_.ranks.size())
        << "a block for each of " << size() << " ranks";
    CheckWithin(send, buffers.send_ranges);
    CheckWithin(receive, buffers.receive_ranges);
    CheckApart(buffers.receive_ranges);
    out.ranges = buffers.send_ranges;
    in.ranges = buffers.receive_ranges;
    CHECK_EQ(out.ranges[rank_].size(), in.ranges[rank_].size());
  }
  return Run("all-to-all", options, [&](const Call& call) {
    if (even && send.elements == 0) return absl::OkStatus();
    if (size() == 1) return CopyToSelf(out.Of(0), in.Of(0));
    return DoAllToAll(out, in, call);
  });
}

absl::Status Communicator::CopyToSelf(const CommBuffer& from,
                                      const CommBuffer& to) {
  if (from.elements > 0 && to.data != from.data) {
    std::memcpy(to.data, from.data, from.bytes());
  }
  return absl::OkStatus();
}

absl::Status Communicator::Send(CommBuffer data, int peer,
                                const CommOptions& options) {
  CHECK(peer >= 0 && peer < size() && peer != rank_)
      << "rank " << rank_ << " sends to " << peer << " of " << size();
  return Run("send", options, [&](const Call& call) {
    if (data.elements == 0) return absl::OkStatus();
    return DoSend(data, peer, call);
  });
}

absl::Status Communicator::Recv(CommBuffer data, int peer,
                                const CommOptions& options) {
  CHECK(peer >= 0 && peer < size() && peer != rank_)
      << "rank " << rank_ << " receives from " << peer << " of " << size();
  return Run("recv", options, [&](const Call& call) {
    if (data.elements == 0) return absl::OkStatus();
    return DoRecv(data, peer, call);
  });
}

absl::Status Communicator::Shift(const ShiftBuffers& buffers,
                                 const CommOptions& options) {
  for (const int peer : {buffers.to, buffers.from}) {
    CHECK(peer >= kNobody && peer < size())
        << "peer " << peer << " of " << size();
  }
  const bool to_itself = buffers.to == rank_ || buffers.from == rank_;
  CHECK(!to_itself || (buffers.to == buffers.from &&
                       buffers.send.bytes() == buffers.receive.bytes()))
      << "rank " << rank_ << " shifts to " << buffers.to << " and from "
      << buffers.from;
  CHECK(!Overlap(buffers.send, buffers.receive)) << "ends of a shift overlap";
  const bool sends = buffers.to != kNobody && buffers.send.elements > 0;
  const bool receives = buffers.from != kNobody && buffers.receive.elements > 0;
  return Run("shift", options, [&](const Call& call) {
    if (to_itself) return CopyToSelf(buffers.send, buffers.receive);
    if (sends && receives) return DoShift(buffers, call);
    if (sends) return DoSend(buffers.send, buffers.to, call);
    if (receives) return DoRecv(buffers.receive, buffers.from, call);
    return absl::OkStatus();
  });
}

absl::Status Communicator::Barrier(const CommOptions& options) {
  return Run("barrier", options, [&](const Call& call) {
    if (size() == 1) return absl::OkStatus();
    return DoBarrier(call);
  });
}

}  // namespace troupe
