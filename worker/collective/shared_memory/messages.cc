#include "worker/collective/shared_memory/messages.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "worker/collective/shared_memory/stream_copy.h"

namespace troupe {

absl::Status SharedSend(Phases& phases, CommBuffer data, int peer) {
  const SegmentMap& map = phases.map();
  const SegmentMap::Route route = {.sender = phases.rank(), .receiver = peer};
  Channel& channel = map.channel(route);
  const char* const from = static_cast<const char*>(data.data);
  const size_t step = map.chunk_bytes();
  for (size_t begin = 0; begin < data.bytes(); begin += step) {
    const uint32_t chunk = channel.written.Get();
    // Until the chunk that lay in this slot has been read.
    RETURN_IF_ERROR(phases.Await(channel.read, chunk - Channel::kSlots, peer));
    channel.message_bytes[chunk % Channel::kSlots].store(data.bytes());
    StreamCopy(map.chunk(route, chunk), from + begin,
               std::min(step, data.bytes() - begin));
    channel.written.Set(chunk + 1);
  }
  return absl::OkStatus();
}

absl::Status SharedRecv(Phases& phases, CommBuffer data, int peer) {
  const SegmentMap& map = phases.map();
  const SegmentMap::Route route = {.sender = peer, .receiver = phases.rank()};
  Channel& channel = map.channel(route);
  char* const to = static_cast<char*>(data.data);
  const size_t step = map.chunk_bytes();
  for (size_t begin = 0; begin < data.bytes(); begin += step) {
    const uint32_t chunk = channel.read.Get();
    RETURN_IF_ERROR(phases.Await(channel.written, chunk, peer));
    const uint64_t sent = channel.message_bytes[chunk % Channel::kSlots].load();
    if (sent != data.bytes()) {
      return phases.Fail({absl::StatusCode::kInternal, peer,
                          absl::StrCat("sent ", sent, " bytes, where ",
                                       data.bytes(), " were expected")});
    }
    std::memcpy(to + begin, map.chunk(route, chunk),
                std::min(step, data.bytes() - begin));
    channel.read.Set(chunk + 1);
  }
  return absl::OkStatus();
}

}  // namespace troupe
