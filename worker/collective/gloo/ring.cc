#include "worker/collective/gloo/ring.h"

#include <algorithm>

#include "proto/base/status.h"
#include "worker/collective/reduce.h"

namespace troupe {
namespace {

// Each segment wakes Gloo's thread and ours, on both ends: the longest is where
// that no longer shows, the shortest still pays for itself.
constexpr int64_t kLongestSegment = 1 << 20;  // bytes
constexpr int64_t kShortestSegment = 128 << 10;
// Receives posted, and sends begun, ahead of the segment in hand.
constexpr int64_t kAhead = 4;

// One pass over the items (step, segment) in order, of some of the steps that
// the header numbers.
class Ring {
 public:
  struct Steps {
    int begin = 0;
    int end = 0;
  };
  // Where this rank's block lies once it is complete: `own`.
  Ring(Wires& wires, const CommBlocks& data, const CommBuffer& own,
       const Steps& steps)
      : wires_(wires),
        data_(data),
        own_(own),
        first_step_(steps.begin),
        ranks_(wires.size()),
        element_bytes_(DTypeBytes(data.whole.element)) {
    const int64_t block = data.longest();
    // Two to a block, so that sending and adding overlap.
    segment_ = std::clamp(block / 2, kShortestSegment / element_bytes_,
                          kLongestSegment / element_bytes_);
    segments_ = std::max<int64_t>(1, (block + segment_ - 1) / segment_);
    items_ = (steps.end - steps.begin) * segments_;
    memory_ = wires.Attach(data.whole.data, data.whole.bytes());
    if (StepOf(0) < ranks_ - 1) {
      const size_t bytes = kAhead * segment_ * element_bytes_;
      scratch_ = wires.Scratch(bytes);
      landing_ = wires.Attach(scratch_, bytes);
    }
  }

  absl::Status Run(ReduceOp op) {
    int64_t next_recv = 0;
    int64_t next_send = 0;
    for (int64_t item = 0; item < items_; ++item) {
      for (; next_recv < std::min(item + kAhead, items_); ++next_recv) {
        RETURN_IF_ERROR(PostRecv(next_recv));
      }
      // What is sent in a step was received, and reduced, one step earlier.
      for (; next_send < std::min(item + kAhead, items_) &&
             next_send - segments_ < item;
           ++next_send) {
        RETURN_IF_ERROR(PostSend(next_send));
      }
      RETURN_IF_ERROR(Receive(item, op));
    }
    return wires_.WaitAllSends({&memory_, 1});
  }

 private:
  int StepOf(int64_t item) const {
    return first_step_ + static_cast<int>(item / segments_);
  }
  bool Reduces(int64_t item) const { return StepOf(item) < ranks_ - 1; }
  // The elements of `item` within the block that lies `back` behind the one
  // that this rank sends in this step.
  ElementRange Elements(int64_t item, int back) const {
    const int64_t segment = item % segments_;
    const ElementRange& range =
        data_.ranges[(wires_.rank() - StepOf(item) - 1 - back + 3 * ranks_) %
                     ranks_];
    const int64_t begin = std::min(range.begin + segment * segment_, range.end);
    return {begin, std::min(begin + segment_, range.end)};
  }
  size_t LandingOffset(int64_t item) const {
    return (item % kAhead) * segment_ * element_bytes_;
  }
  WireMessage MessageOf(const ElementRange& range, int peer) const {
    return {.peer = peer,
            .offset = static_cast<size_t>(range.begin * element_bytes_),
            .bytes = static_cast<size_t>(range.size() * element_bytes_)};
  }

  absl::Status PostSend(int64_t item) {
    const ElementRange range = Elements(item, 0);
    if (range.size() == 0) return absl::OkStatus();
    const int next = (wires_.rank() + 1) % ranks_;
    return wires_.PostSend(memory_, MessageOf(range, next));
  }

  absl::Status PostRecv(int64_t item) {
    const ElementRange range = Elements(item, 1);
    if (range.size() == 0) return absl::OkStatus();
    const int previous = (wires_.rank() + ranks_ - 1) % ranks_;
    WireMessage message = MessageOf(range, previous);
    if (!Reduces(item)) return wires_.PostRecv(memory_, message);
    message.offset = LandingOffset(item);
    return wires_.PostRecv(landing_, message);
  }

  absl::Status Receive(int64_t item, ReduceOp op) {
    const ElementRange range = Elements(item, 1);
    if (range.size() == 0) return absl::OkStatus();
    if (!Reduces(item)) return wires_.WaitRecv(memory_);
    RETURN_IF_ERROR(wires_.WaitRecv(landing_));
    const CommBuffer mine = data_.whole.Slice(range.begin, range.end);
    const CommBuffer theirs = {scratch_ + LandingOffset(item), range.size(),
                               mine.element};
    CommBuffer sum = mine;
    if (StepOf(item) == ranks_ - 2) {  // the last: this rank's block
      const int64_t begin = range.begin - data_.ranges[wires_.rank()].begin;
      sum = own_.Slice(begin, begin + range.size());
    }
    if (sum.data == mine.data) {
      ReduceInto(op, mine, theirs);
    } else {
      ReduceRows(op, sum, {mine, theirs});
    }
    return absl::OkStatus();
  }

  Wires& wires_;
  const CommBlocks& data_;
  const CommBuffer own_;
  const int first_step_;
  const int ranks_;
  const int64_t element_bytes_;
  int64_t segment_ = 0;   // elements
  int64_t segments_ = 0;  // of the longest block
  int64_t items_ = 0;
  char* scratch_ = nullptr;  // kAhead segments
  Wire memory_;
  Wire landing_;
};

}  // namespace

absl::Status RingAllReduce(Wires& wires, const CommBlocks& data, ReduceOp op) {
  const int rest = wires.size() - 1;
  return Ring(wires, data, data.Of(wires.rank()), {.begin = 0, .end = 2 * rest})
      .Run(op);
}

absl::Status RingReduceScatter(Wires& wires, const CommBlocks& send,
                               const CommBuffer& receive, ReduceOp op) {
  return Ring(wires, send, receive, {.begin = 0, .end = wires.size() - 1})
      .Run(op);
}

absl::Status RingAllGather(Wires& wires, const CommBlocks& data) {
  const int rest = wires.size() - 1;
  return Ring(wires, data, data.Of(wires.rank()),
              {.begin = rest, .end = 2 * rest})
      .Run(ReduceOp::kSum);
}

absl::Status RingBroadcast(Wires& wires, CommBuffer data, int root) {
  const int ranks = wires.size();
  const int next = (wires.rank() + 1) % ranks;
  const int previous = (wires.rank() + ranks - 1) % ranks;
  const bool receives = wires.rank() != root;
  const bool sends = next != root;
  const size_t bytes = data.bytes();
  Wire wire = wires.Attach(data.data, bytes);
  const auto segment = [bytes](size_t begin, int peer) {
    return WireMessage{
        .peer = peer,
        .offset = begin,
        .bytes = std::min<size_t>(kLongestSegment, bytes - begin)};
  };
  size_t posted = 0;
  for (size_t begin = 0; begin < bytes; begin += kLongestSegment) {
    const size_t ahead = begin + kAhead * kLongestSegment;
    for (; receives && posted < std::min(ahead, bytes);
         posted += kLongestSegment) {
      RETURN_IF_ERROR(wires.PostRecv(wire, segment(posted, previous)));
    }
    if (receives) RETURN_IF_ERROR(wires.WaitRecv(wire));
    if (sends) RETURN_IF_ERROR(wires.PostSend(wire, segment(begin, next)));
  }
  return wires.WaitAllSends({&wire, 1});
}

}  // namespace troupe
