// What lies where in the segment of a group: a few counters, and slots for the
// numbers that ranks hand to each other.
//
//   states    one for each rank
//   gate      where all wait for all
//   channels  one for each ordered pair: send and recv
//   in slots  two for each rank: what it gives to the others
//   out slots two for each rank: what it has reduced for the others
//
// The slots are so small that they stay in the processor's cache, and larger
// buffers pass through them piece by piece. A segment is 3.5 MiB for two ranks,
// 6 MiB for four, and for any number less than 18 MiB.
#ifndef TROUPE_WORKER_COLLECTIVE_SHARED_MEMORY_SEGMENT_MAP_H_
#define TROUPE_WORKER_COLLECTIVE_SHARED_MEMORY_SEGMENT_MAP_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "worker/collective/shared_memory/shared_counter.h"

namespace troupe {

// What a rank lets the others know. Only the rank itself writes to it, but for
// `news`.
struct alignas(64) MemberState {
  // The last words of a rank: why it goes.
  enum Notice : int32_t {
    kNone = 0,
    kLeft = 1,     // destroyed its communicator, all well
    kAborted = 2,  // Abort() was called; text says why
    kLost = 3,     // `about` is dead or has left
    kGaveUp = 4,   // waited for `about` as long as it was to
  };

  std::atomic<int32_t> process{0};
  std::atomic<uint32_t> phase{0};  // phases that it has finished
  // What it called at the beginning of a phase, by the phase's parity.
  std::atomic<uint64_t> call[2] = {};
  std::atomic<uint64_t> longest[2] = {};  // bytes: all_to_all.h
  // While it sleeps: for which peer, and until which counter (its place in the
  // segment) is not what it was.
  std::atomic<int32_t> waits_for{-1};
  std::atomic<uint32_t> waits_at{0};
  std::atomic<uint32_t> waits_seen{0};
  // Written once; `about` and `text` before `notice`.
  std::atomic<int32_t> notice{kNone};
  int32_t about = -1;
  char text[176] = {};
  // Chunks that others have written for it, or read of its own: what it waits
  // for where any will do.
  SharedCounter news;
};

struct Gate {
  SharedCounter turn;  // phases that all have finished
  alignas(64) std::atomic<uint32_t> arrived{0};  // at the end of this one
};

// From one rank to another. Slot i % kSlots holds chunk i.
struct Channel {
  static constexpr int kSlots = 2;
  SharedCounter written;  // chunks
  SharedCounter read;
  std::atomic<uint64_t> message_bytes[kSlots] = {};  // the chunk belongs to
  // Of an all-to-all, by the parity of the phase: what the sender says that it
  // gives, and the receiver that it expects.
  std::atomic<uint64_t> gives[2] = {};
  std::atomic<uint64_t> expects[2] = {};
};

class SegmentMap {
 public:
  // Of a segment of Bytes(ranks), which outlives it.
  SegmentMap(char* memory, int ranks);
  static size_t Bytes(int ranks);
  // Makes states, gate and channels. Once, before others map the segment.
  void Initialize();

  int ranks() const { return ranks_; }
  // A rank's in slot is pieces of piece_bytes() each: one for each rank. Its
  // out slot is one piece.
  int64_t piece_bytes() const { return piece_bytes_; }
  int64_t slot_bytes() const { return piece_bytes_ * ranks_; }
  int64_t chunk_bytes() const { return chunk_bytes_; }

  struct Route {
    int sender;
    int receiver;
  };
  MemberState& state(int rank) const;
  Gate& gate() const;
  Channel& channel(const Route& route) const;
  // The counter at a place, and the place of a counter.
  SharedCounter& counter(uint32_t place) const;
  uint32_t PlaceOf(const SharedCounter& counter) const;

  // Of 64-byte alignment.
  struct SlotOf {
    int rank;
    int parity;
  };
  char* in_slot(const SlotOf& slot) const;
  char* out_slot(const SlotOf& slot) const;
  char* chunk(const Route& route, uint32_t index) const;

 private:
  size_t ChannelIndex(const Route& route) const;

  char* const memory_;
  const int ranks_;
  const int64_t piece_bytes_;
  const int64_t chunk_bytes_;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_COLLECTIVE_SHARED_MEMORY_SEGMENT_MAP_H_
