#include "worker/collective/shared_memory/segment_map.h"

#include <algorithm>
#include <new>

namespace troupe {
namespace {

// A phase of a collective moves a slot of each rank: long enough that meeting
// shows little, short enough for the second cache.
constexpr int64_t kSlotBytesMax = 512 << 10;
constexpr int64_t kInSlotsBytesMax = 8 << 20;  // of all ranks
constexpr int64_t kChunkBytesMax = 128 << 10;
constexpr int64_t kChunkBytesMin = 1 << 10;
constexpr int64_t kChunksBytesMax = 4
                                    << 20;  // of all channels, but for the min
constexpr int64_t kLine = 128;  // two cache lines: they are fetched in pairs

int64_t RoundDown(int64_t bytes) { return bytes / kLine * kLine; }

int64_t PieceBytes(int ranks) {
  const int64_t slot = std::min(kSlotBytesMax, kInSlotsBytesMax / (2 * ranks));
  return std::max(kLine, RoundDown(slot / ranks));
}

int64_t Channels(int ranks) { return int64_t{ranks} * (ranks - 1); }

int64_t ChunkBytes(int ranks) {
  const int64_t chunks =
      std::max<int64_t>(1, Channels(ranks) * Channel::kSlots);
  return RoundDown(
      std::clamp(kChunksBytesMax / chunks, kChunkBytesMin, kChunkBytesMax));
}

// Where each part begins.
struct Offsets {
  explicit Offsets(int ranks) {
    const int64_t piece = PieceBytes(ranks);
    gate = ranks * sizeof(MemberState);
    channels = gate + sizeof(Gate);
    // Page by page from here on.
    in_slots =
        (channels + Channels(ranks) * sizeof(Channel) + 4095) / 4096 * 4096;
    out_slots = in_slots + 2 * ranks * ranks * piece;
    chunks = out_slots + 2 * ranks * piece;
    end = chunks + Channels(ranks) * Channel::kSlots * ChunkBytes(ranks);
  }
  size_t gate, channels, in_slots, out_slots, chunks, end;
};

}  // namespace

SegmentMap::SegmentMap(char* memory, int ranks)
    : memory_(memory),
      ranks_(ranks),
      piece_bytes_(PieceBytes(ranks)),
      chunk_bytes_(ChunkBytes(ranks)) {}

size_t SegmentMap::Bytes(int ranks) { return Offsets(ranks).end; }

void SegmentMap::Initialize() {
  for (int rank = 0; rank < ranks_; ++rank) new (&state(rank)) MemberState();
  new (&gate()) Gate();
  for (int64_t i = 0; i < Channels(ranks_); ++i) {
    new (memory_ + Offsets(ranks_).channels + i * sizeof(Channel)) Channel();
  }
}

MemberState& SegmentMap::state(int rank) const {
  return reinterpret_cast<MemberState*>(memory_)[rank];
}

Gate& SegmentMap::gate() const {
  return *reinterpret_cast<Gate*>(memory_ + Offsets(ranks_).gate);
}

size_t SegmentMap::ChannelIndex(const Route& route) const {
  const int receiver = route.receiver - (route.receiver > route.sender ? 1 : 0);
  return static_cast<size_t>(route.sender) * (ranks_ - 1) + receiver;
}

Channel& SegmentMap::channel(const Route& route) const {
  return reinterpret_cast<Channel*>(
      memory_ + Offsets(ranks_).channels)[ChannelIndex(route)];
}

SharedCounter& SegmentMap::counter(uint32_t place) const {
  return *reinterpret_cast<SharedCounter*>(memory_ + place);
}

uint32_t SegmentMap::PlaceOf(const SharedCounter& counter) const {
  return reinterpret_cast<const char*>(&counter) - memory_;
}

char* SegmentMap::in_slot(const SlotOf& slot) const {
  return memory_ + Offsets(ranks_).in_slots +
         (slot.parity * ranks_ + slot.rank) * slot_bytes();
}

char* SegmentMap::out_slot(const SlotOf& slot) const {
  return memory_ + Offsets(ranks_).out_slots +
         (slot.parity * ranks_ + slot.rank) * piece_bytes_;
}

char* SegmentMap::chunk(const Route& route, uint32_t index) const {
  return memory_ + Offsets(ranks_).chunks +
         (ChannelIndex(route) * Channel::kSlots + index % Channel::kSlots) *
             chunk_bytes_;
}

}  // namespace troupe
