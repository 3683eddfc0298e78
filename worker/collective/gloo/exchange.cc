#include "worker/collective/gloo/exchange.h"

#include <algorithm>
#include <vector>

#include "proto/base/status.h"
#include "worker/collective/reduce.h"

namespace troupe {
namespace {

constexpr int64_t kSegmentBytes = 256 << 10;

// A block as a message with `peer`.
WireMessage BlockMessage(const CommBlocks& blocks, int index, int peer) {
  const ElementRange& range = blocks.ranges[index];
  const size_t bytes = DTypeBytes(blocks.whole.element);
  return {.peer = peer,
          .offset = range.begin * bytes,
          .bytes = range.size() * bytes,
          .tag = range.size() * bytes};
}

absl::Status SendIfAny(Wires& wires, Wire& wire, const WireMessage& message) {
  return message.bytes == 0 ? absl::OkStatus() : wires.PostSend(wire, message);
}

absl::Status RecvIfAny(Wires& wires, Wire& wire, const WireMessage& message) {
  return message.bytes == 0 ? absl::OkStatus() : wires.PostRecv(wire, message);
}

// A wire for each peer, all over the same memory.
std::vector<Wire> AttachEach(Wires& wires, const CommBuffer& memory) {
  std::vector<Wire> attached(wires.size());
  for (int peer = 0; peer < wires.size(); ++peer) {
    if (peer == wires.rank()) continue;
    attached[peer] = wires.Attach(memory.data, memory.bytes());
  }
  return attached;
}

CommBuffer Scratch(Wires& wires, int64_t bytes) {
  return {wires.Scratch(bytes), bytes, DType::kU8};
}

// Part `index` of a block, in elements of the buffer; may be empty.
ElementRange SegmentOf(const ElementRange& block, int64_t index,
                       int64_t segment) {
  const int64_t begin = std::min(block.begin + index * segment, block.end);
  return {begin, std::min(begin + segment, block.end)};
}

// Reduces segments of this rank's block while the next ones arrive.
class BlockReducer {
 public:
  BlockReducer(Wires& wires, const CommBlocks& send, const CommBuffer& receive)
      : wires_(wires),
        send_(send),
        receive_(receive),
        element_bytes_(DTypeBytes(receive.element)),
        segment_(kSegmentBytes / element_bytes_),
        scratch_(Scratch(wires, 2 * wires.size() * segment_ * element_bytes_)),
        memory_(AttachEach(wires, send.whole)) {
    for (std::vector<Wire>& landing : landing_) {
      landing = AttachEach(wires, scratch_);
    }
  }

  absl::Status Run(ReduceOp op) {
    const int64_t segments = (send_.longest() + segment_ - 1) / segment_;
    for (int64_t i = 0; i <= segments; ++i) {
      if (i < segments) RETURN_IF_ERROR(Post(i));
      if (i > 0) RETURN_IF_ERROR(Reduce(i - 1, op));
    }
    return wires_.WaitAllSends(absl::MakeSpan(memory_));
  }

 private:
  // Of the block of a rank.
  ElementRange Segment(int rank, int64_t index) const {
    return SegmentOf(send_.ranges[rank], index, segment_);
  }
  // Where the segment of `peer` lands; two segments are under way at a time.
  size_t Landing(int64_t index, int peer) const {
    return ((index % 2) * wires_.size() + peer) * segment_ * element_bytes_;
  }

  absl::Status Post(int64_t index) {
    const ElementRange mine = Segment(wires_.rank(), index);
    for (int step = 1; step < wires_.size(); ++step) {
      const int peer = (wires_.rank() + step) % wires_.size();
      RETURN_IF_ERROR(RecvIfAny(wires_, landing_[index % 2][peer],
                                {.peer = peer,
                                 .offset = Landing(index, peer),
                                 .bytes = mine.size() * element_bytes_}));
    }
    for (int step = 1; step < wires_.size(); ++step) {
      const int peer = (wires_.rank() + step) % wires_.size();
      const ElementRange theirs = Segment(peer, index);
      RETURN_IF_ERROR(SendIfAny(wires_, memory_[peer],
                                {.peer = peer,
                                 .offset = theirs.begin * element_bytes_,
                                 .bytes = theirs.size() * element_bytes_}));
    }
    return absl::OkStatus();
  }

  absl::Status Reduce(int64_t index, ReduceOp op) {
    RETURN_IF_ERROR(wires_.WaitAllRecvs(absl::MakeSpan(landing_[index % 2])));
    const ElementRange mine = Segment(wires_.rank(), index);
    const int64_t begin = mine.begin - send_.ranges[wires_.rank()].begin;
    const CommBuffer out = receive_.Slice(begin, begin + mine.size());
    std::vector<CommBuffer> rows(wires_.size());
    for (int rank = 0; rank < wires_.size(); ++rank) {
      rows[rank] = rank == wires_.rank()
                       ? send_.whole.Slice(mine.begin, mine.end)
                       : CommBuffer{static_cast<char*>(scratch_.data) +
                                        Landing(index, rank),
                                    mine.size(), receive_.element};
    }
    ReduceRows(op, out, rows);
    return absl::OkStatus();
  }

  Wires& wires_;
  const CommBlocks& send_;
  const CommBuffer receive_;
  const size_t element_bytes_;
  const int64_t segment_;  // elements
  const CommBuffer scratch_;
  std::vector<Wire> memory_;
  std::vector<Wire> landing_[2];
};

}  // namespace

absl::Status DirectAllReduce(Wires& wires, CommBuffer data, ReduceOp op) {
  const size_t bytes = data.bytes();
  const CommBuffer scratch = Scratch(wires, bytes * wires.size());
  std::vector<Wire> memory = AttachEach(wires, data);
  std::vector<Wire> landing = AttachEach(wires, scratch);
  std::vector<CommBuffer> rows(wires.size());
  rows[wires.rank()] = data;
  for (int step = 1; step < wires.size(); ++step) {
    const int peer = (wires.rank() + step) % wires.size();
    rows[peer] = {static_cast<char*>(scratch.data) + peer * bytes,
                  data.elements, data.element};
    RETURN_IF_ERROR(wires.PostRecv(
        landing[peer], {.peer = peer, .offset = peer * bytes, .bytes = bytes}));
  }
  for (int step = 1; step < wires.size(); ++step) {
    const int peer = (wires.rank() + step) % wires.size();
    RETURN_IF_ERROR(
        wires.PostSend(memory[peer], {.peer = peer, .bytes = bytes}));
  }
  RETURN_IF_ERROR(wires.WaitAllRecvs(absl::MakeSpan(landing)));
  RETURN_IF_ERROR(wires.WaitAllSends(absl::MakeSpan(memory)));
  ReduceRows(op, data, rows);
  return absl::OkStatus();
}

absl::Status DirectReduce(Wires& wires, const CommBuffer& data, int root,
                          ReduceOp op) {
  if (wires.rank() != root) return DirectSend(wires, data, root);
  const size_t bytes = data.bytes();
  const CommBuffer scratch = Scratch(wires, bytes * wires.size());
  std::vector<Wire> landing = AttachEach(wires, scratch);
  std::vector<CommBuffer> rows(wires.size(), data);
  for (int step = 1; step < wires.size(); ++step) {
    const int peer = (root + step) % wires.size();
    rows[peer].data = static_cast<char*>(scratch.data) + peer * bytes;
    RETURN_IF_ERROR(wires.PostRecv(
        landing[peer],
        {.peer = peer, .offset = peer * bytes, .bytes = bytes, .tag = bytes}));
  }
  RETURN_IF_ERROR(wires.WaitAllRecvs(absl::MakeSpan(landing)));
  ReduceRows(op, data, rows);
  return absl::OkStatus();
}

absl::Status DirectGather(Wires& wires, const CommBlocks& data, int root) {
  std::vector<Wire> memory = AttachEach(wires, data.whole);
  if (wires.rank() != root) {
    RETURN_IF_ERROR(
        SendIfAny(wires, memory[root], BlockMessage(data, wires.rank(), root)));
    return wires.WaitAllSends(absl::MakeSpan(memory));
  }
  for (int step = 1; step < wires.size(); ++step) {
    const int peer = (root + step) % wires.size();
    RETURN_IF_ERROR(
        RecvIfAny(wires, memory[peer], BlockMessage(data, peer, peer)));
  }
  return wires.WaitAllRecvs(absl::MakeSpan(memory));
}

absl::Status DirectReduceScatter(Wires& wires, const CommBlocks& send,
                                 const CommBuffer& receive, ReduceOp op) {
  return BlockReducer(wires, send, receive).Run(op);
}

absl::Status DirectAllGather(Wires& wires, const CommBlocks& data) {
  std::vector<Wire> memory = AttachEach(wires, data.whole);
  for (int step = 1; step < wires.size(); ++step) {
    const int peer = (wires.rank() + step) % wires.size();
    RETURN_IF_ERROR(
        RecvIfAny(wires, memory[peer], BlockMessage(data, peer, peer)));
  }
  for (int step = 1; step < wires.size(); ++step) {
    const int peer = (wires.rank() + step) % wires.size();
    RETURN_IF_ERROR(
        SendIfAny(wires, memory[peer], BlockMessage(data, wires.rank(), peer)));
  }
  RETURN_IF_ERROR(wires.WaitAllRecvs(absl::MakeSpan(memory)));
  return wires.WaitAllSends(absl::MakeSpan(memory));
}

absl::Status DirectBroadcast(Wires& wires, CommBuffer data, int root) {
  std::vector<Wire> memory = AttachEach(wires, data);
  if (wires.rank() != root) {
    RETURN_IF_ERROR(
        wires.PostRecv(memory[root], {.peer = root, .bytes = data.bytes()}));
    return wires.WaitRecv(memory[root]);
  }
  for (int step = 1; step < wires.size(); ++step) {
    const int peer = (root + step) % wires.size();
    RETURN_IF_ERROR(
        wires.PostSend(memory[peer], {.peer = peer, .bytes = data.bytes()}));
  }
  return wires.WaitAllSends(absl::MakeSpan(memory));
}

absl::Status DirectAllToAll(Wires& wires, const CommBlocks& send,
                            const CommBlocks& receive) {
  std::vector<Wire> from = AttachEach(wires, send.whole);
  std::vector<Wire> to = AttachEach(wires, receive.whole);
  for (int step = 1; step < wires.size(); ++step) {
    const int peer = (wires.rank() + wires.size() - step) % wires.size();
    RETURN_IF_ERROR(
        RecvIfAny(wires, to[peer], BlockMessage(receive, peer, peer)));
  }
  for (int step = 1; step < wires.size(); ++step) {
    const int peer = (wires.rank() + step) % wires.size();
    RETURN_IF_ERROR(
        SendIfAny(wires, from[peer], BlockMessage(send, peer, peer)));
  }
  RETURN_IF_ERROR(wires.WaitAllRecvs(absl::MakeSpan(to)));
  return wires.WaitAllSends(absl::MakeSpan(from));
}

absl::Status DirectSend(Wires& wires, const CommBuffer& data, int to) {
  return DirectShift(wires, {.send = data, .to = to});
}

absl::Status DirectRecv(Wires& wires, const CommBuffer& data, int from) {
  return DirectShift(wires, {.receive = data, .from = from});
}

absl::Status DirectShift(Wires& wires, const ShiftBuffers& buffers) {
  Wire in, out;
  if (buffers.from != kNobody) {
    const size_t bytes = buffers.receive.bytes();
    in = wires.Attach(buffers.receive.data, bytes);
    RETURN_IF_ERROR(wires.PostRecv(
        in, {.peer = buffers.from, .bytes = bytes, .tag = bytes}));
  }
  if (buffers.to != kNobody) {
    const size_t bytes = buffers.send.bytes();
    out = wires.Attach(buffers.send.data, bytes);
    RETURN_IF_ERROR(wires.PostSend(
        out, {.peer = buffers.to, .bytes = bytes, .tag = bytes}));
    RETURN_IF_ERROR(wires.WaitSend(out));
  }
  return buffers.from == kNobody ? absl::OkStatus() : wires.WaitRecv(in);
}

absl::Status DisseminationBarrier(Wires& wires) {
  char bytes[2] = {};
  Wire out = wires.Attach(&bytes[0], 1);
  Wire in = wires.Attach(&bytes[1], 1);
  for (int distance = 1; distance < wires.size(); distance *= 2) {
    const int to = (wires.rank() + distance) % wires.size();
    const int from = (wires.rank() + wires.size() - distance) % wires.size();
    RETURN_IF_ERROR(
        wires.PostRecv(in, {.peer = from, .bytes = 1, .payload = false}));
    RETURN_IF_ERROR(
        wires.PostSend(out, {.peer = to, .bytes = 1, .payload = false}));
    RETURN_IF_ERROR(wires.WaitRecv(in));
    RETURN_IF_ERROR(wires.WaitSend(out));
  }
  return absl::OkStatus();
}

}  // namespace troupe
