#include "worker/collective/gloo/ring.h"

#include <algorithm>

#include "proto/base/status.h"
#include "proto/plan/layout.h"
#include "worker/collective/reduce.h"

namespace troupe {
namespace {

// Each segment wakes Gloo's thread and ours, on both ends: the longest is where
// that no longer shows, the shortest still pays for itself.
constexpr int64_t kLongestSegment = 1 << 20;  // bytes
constexpr int64_t kShortestSegment = 128 << 10;
// Receives posted, and sends begun, ahead of the segment in hand.
constexpr int64_t kAhead = 4;

// Some steps of the ring: see the header, with blocks moved on by `shift`.
struct RingSteps {
  int count = 0;
  int reduce = 0;  // the first so many add what they receive
  int shift = 0;
};

// One pass over the items (step, segment) in order.
class Ring {
 public:
  Ring(Wires& wires, CommBuffer data, const RingSteps& steps)
      : wires_(wires), data_(data), steps_(steps), ranks_(wires.size()) {
    const int64_t block = EvenPiece(data.elements, {0, ranks_}).size();
    const int64_t element = ElementBytes(data.element);
    // Two to a block, so that sending and adding overlap.
    segment_ = std::clamp(block / 2, kShortestSegment / element,
                          kLongestSegment / element);
    segments_ = std::max<int64_t>(1, (block + segment_ - 1) / segment_);
    items_ = steps.count * segments_;
    memory_ = wires.Attach(data.data, data.bytes());
    if (steps.reduce > 0) {
      const size_t bytes = kAhead * segment_ * element;
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
  // The elements of `item` within the block that lies `back` behind this
  // rank's.
  Range Elements(int64_t item, int back) const {
    const int step = static_cast<int>(item / segments_);
    const int64_t segment = item % segments_;
    const int block =
        (wires_.rank() - step - back + steps_.shift + 3 * ranks_) % ranks_;
    const Range range = EvenPiece(data_.elements, {block, ranks_});
    const int64_t begin = std::min(range.begin + segment * segment_, range.end);
    return {begin, std::min(begin + segment_, range.end)};
  }
  bool Reduces(int64_t item) const { return item / segments_ < steps_.reduce; }
  size_t LandingOffset(int64_t item) const {
    return (item % kAhead) * segment_ * ElementBytes(data_.element);
  }
  WireMessage MessageOf(const Range& range, int peer) const {
    const size_t bytes = ElementBytes(data_.element);
    return {.peer = peer,
            .offset = range.begin * bytes,
            .bytes = range.size() * bytes};
  }

  absl::Status PostSend(int64_t item) {
    const Range range = Elements(item, 0);
    if (range.size() == 0) return absl::OkStatus();
    const int next = (wires_.rank() + 1) % ranks_;
    return wires_.PostSend(memory_, MessageOf(range, next));
  }

  absl::Status PostRecv(int64_t item) {
    const Range range = Elements(item, 1);
    if (range.size() == 0) return absl::OkStatus();
    const int previous = (wires_.rank() + ranks_ - 1) % ranks_;
    WireMessage message = MessageOf(range, previous);
    if (!Reduces(item)) return wires_.PostRecv(memory_, message);
    message.offset = LandingOffset(item);
    return wires_.PostRecv(landing_, message);
  }

  absl::Status Receive(int64_t item, ReduceOp op) {
    const Range range = Elements(item, 1);
    if (range.size() == 0) return absl::OkStatus();
    if (!Reduces(item)) return wires_.WaitRecv(memory_);
    RETURN_IF_ERROR(wires_.WaitRecv(landing_));
    ReduceInto(op, data_.Slice(range.begin, range.end),
               {scratch_ + LandingOffset(item), range.size(), data_.element});
    return absl::OkStatus();
  }

  Wires& wires_;
  const CommBuffer data_;
  const RingSteps steps_;
  const int ranks_;
  int64_t segment_ = 0;   // elements
  int64_t segments_ = 0;  // of the longest block
  int64_t items_ = 0;
  char* scratch_ = nullptr;  // kAhead segments
  Wire memory_;
  Wire landing_;
};

}  // namespace

absl::Status RingAllReduce(Wires& wires, CommBuffer data, ReduceOp op) {
  const int rest = wires.size() - 1;
  return Ring(wires, data, {.count = 2 * rest, .reduce = rest}).Run(op);
}

absl::Status RingReduceScatter(Wires& wires, CommBuffer data, ReduceOp op) {
  const int rest = wires.size() - 1;
  return Ring(wires, data, {.count = rest, .reduce = rest, .shift = -1})
      .Run(op);
}

absl::Status RingAllGather(Wires& wires, CommBuffer data) {
  return Ring(wires, data, {.count = wires.size() - 1}).Run(ReduceOp::kSum);
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
