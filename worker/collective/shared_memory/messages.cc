#include "worker/collective/shared_memory/messages.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "worker/collective/shared_memory/stream_copy.h"

namespace troupe {

namespace {

// The ends of a message, of which a chunk moves at a time, when it is ready.
class Sender {
 public:
  Sender(Phases& phases, const CommBuffer& data, int peer)
      : phases_(phases),
        data_(data),
        peer_(peer),
        route_{.sender = phases.rank(), .receiver = peer},
        channel_(phases.map().channel(route_)) {}

  int peer() const { return peer_; }
  bool Done() const { return begin_ >= data_.bytes(); }
  // The chunk that lay in the next slot has been read.
  bool Ready() const { return channel_.read.Get() != Full(); }
  absl::Status Wait() { return phases_.Await(channel_.read, Full(), {peer_}); }
  absl::Status MoveChunk() {
    const SegmentMap& map = phases_.map();
    const uint32_t chunk = channel_.written.Get();
    const size_t bytes =
        std::min<size_t>(map.chunk_bytes(), data_.bytes() - begin_);
    channel_.message_bytes[chunk % Channel::kSlots].store(data_.bytes());
    StreamCopy(map.chunk(route_, chunk),
               static_cast<const char*>(data_.data) + begin_, bytes);
    channel_.written.Set(chunk + 1);
    phases_.CountGiven(static_cast<int64_t>(bytes));
    map.state(peer_).news.Advance();
    begin_ += bytes;
    return absl::OkStatus();
  }

 private:
  uint32_t Full() const { return channel_.written.Get() - Channel::kSlots; }

  Phases& phases_;
  const CommBuffer data_;
  const int peer_;
  const SegmentMap::Route route_;
  Channel& channel_;
  size_t begin_ = 0;
};

class Receiver {
 public:
  Receiver(Phases& phases, const CommBuffer& data, int peer)
      : phases_(phases),
        data_(data),
        peer_(peer),
        route_{.sender = peer, .receiver = phases.rank()},
        channel_(phases.map().channel(route_)) {}

  int peer() const { return peer_; }
  bool Done() const { return begin_ >= data_.bytes(); }
  bool Ready() const { return channel_.written.Get() != channel_.read.Get(); }
  absl::Status Wait() {
    return phases_.Await(channel_.written, channel_.read.Get(), {peer_});
  }
  absl::Status MoveChunk() {
    const SegmentMap& map = phases_.map();
    const uint32_t chunk = channel_.read.Get();
    const uint64_t sent =
        channel_.message_bytes[chunk % Channel::kSlots].load();
    if (sent != data_.bytes()) {
      return phases_.Fail({absl::StatusCode::kInternal, peer_,
                           absl::StrCat("sent ", sent, " bytes, where ",
                                        data_.bytes(), " were expected")});
    }
    const size_t bytes =
        std::min<size_t>(map.chunk_bytes(), data_.bytes() - begin_);
    std::memcpy(static_cast<char*>(data_.data) + begin_,
                map.chunk(route_, chunk), bytes);
    channel_.read.Set(chunk + 1);
    map.state(peer_).news.Advance();
    begin_ += bytes;
    return absl::OkStatus();
  }

 private:
  Phases& phases_;
  const CommBuffer data_;
  const int peer_;
  const SegmentMap::Route route_;
  Channel& channel_;
  size_t begin_ = 0;
};

template <typename End>
absl::Status MoveAll(End end) {
  while (!end.Done()) {
    RETURN_IF_ERROR(end.Wait());
    RETURN_IF_ERROR(end.MoveChunk());
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status SharedSend(Phases& phases, CommBuffer data, int peer) {
  return MoveAll(Sender(phases, data, peer));
}

absl::Status SharedRecv(Phases& phases, CommBuffer data, int peer) {
  return MoveAll(Receiver(phases, data, peer));
}

absl::Status SharedShift(Phases& phases, const ShiftBuffers& buffers) {
  Sender sender(phases, buffers.send, buffers.to);
  Receiver receiver(phases, buffers.receive, buffers.from);
  SharedCounter& news = phases.map().state(phases.rank()).news;
  while (!sender.Done() || !receiver.Done()) {
    const uint32_t seen = news.Get();  // before the look at both
    const bool sends = !sender.Done() && sender.Ready();
    if (sends) RETURN_IF_ERROR(sender.MoveChunk());
    const bool receives = !receiver.Done() && receiver.Ready();
    if (receives) RETURN_IF_ERROR(receiver.MoveChunk());
    if (sends || receives) continue;
    std::vector<int> peers;
    if (!sender.Done()) peers.push_back(sender.peer());
    if (!receiver.Done()) peers.push_back(receiver.peer());
    RETURN_IF_ERROR(phases.Await(news, seen, peers));
  }
  return absl::OkStatus();
}

}  // namespace troupe
