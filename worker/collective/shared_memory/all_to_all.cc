#include "worker/collective/shared_memory/all_to_all.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "worker/collective/shared_memory/pieces.h"

namespace troupe {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;  // the phase orders it

void SaySizes(const Phases& phases, const CommBlocks& send,
              const CommBlocks& receive) {
  const SegmentMap& map = phases.map();
  const int me = phases.rank();
  const int parity = phases.writes();
  const size_t element = DTypeBytes(send.whole.element);
  map.state(me).longest[parity].store(send.longest() * element, kRelaxed);
  for (int peer = 0; peer < phases.ranks(); ++peer) {
    if (peer == me) continue;
    map.channel({.sender = me, .receiver = peer})
        .gives[parity]
        .store(send.Of(peer).bytes(), kRelaxed);
    map.channel({.sender = peer, .receiver = me})
        .expects[parity]
        .store(receive.Of(peer).bytes(), kRelaxed);
  }
}

// The bytes of the longest block of all.
absl::StatusOr<int64_t> Agree(Phases& phases) {
  const SegmentMap& map = phases.map();
  const int me = phases.rank();
  const int parity = phases.reads();
  uint64_t longest = 0;
  for (int peer = 0; peer < phases.ranks(); ++peer) {
    longest = std::max(longest, map.state(peer).longest[parity].load(kRelaxed));
    if (peer == me) continue;
    const Channel& out = map.channel({.sender = me, .receiver = peer});
    const Channel& in = map.channel({.sender = peer, .receiver = me});
    const uint64_t wanted = out.expects[parity].load(kRelaxed);
    const uint64_t given = out.gives[parity].load(kRelaxed);
    if (wanted != given) {
      return phases.Fail({absl::StatusCode::kInternal, peer,
                          absl::StrCat("expects ", wanted,
                                       " bytes of this "
                                       "rank, which sends ",
                                       given)});
    }
    const uint64_t expected = in.expects[parity].load(kRelaxed);
    const uint64_t sent = in.gives[parity].load(kRelaxed);
    if (expected != sent) {
      return phases.Fail({absl::StatusCode::kInternal, peer,
                          absl::StrCat("sends ", sent,
                                       " bytes to this rank, "
                                       "which expects ",
                                       expected)});
    }
  }
  return static_cast<int64_t>(longest);
}

}  // namespace

absl::StatusOr<int64_t> SharedAllToAll(Phases& phases, CopyKind kind,
                                       const CommBlocks& send,
                                       const CommBlocks& receive) {
  Pieces pieces(phases, kind, send.whole.element, phases.map().piece_bytes());
  const int me = phases.rank();
  SaySizes(phases, send, receive);
  pieces.GiveShares(send, 0);
  RETURN_IF_ERROR(phases.Next());
  ASSIGN_OR_RETURN(const int64_t longest, Agree(phases));
  const int64_t count = pieces.CountIn(
      longest / static_cast<int64_t>(DTypeBytes(send.whole.element)));
  for (int64_t t = 1; t <= count; ++t) {
    if (t > 1) RETURN_IF_ERROR(phases.Next());
    if (t < count) pieces.GiveShares(send, t);
    for (int rank = 0; rank < phases.ranks(); ++rank) {
      const char* const from =
          rank == me
              ? static_cast<const char*>(pieces.Of(send.Of(me), t - 1).data)
              : pieces.TakenFrom(rank) + pieces.SharePlace(me);
      Pieces::Take(pieces.Of(receive.Of(rank), t - 1), from);
    }
  }
  return longest;
}

}  // namespace troupe
