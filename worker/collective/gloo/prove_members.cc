#include "worker/collective/gloo/prove_members.h"

#include <gloo/transport/unbound_buffer.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "proto/base/steady_time.h"
#include "proto/trust/refused_peers.h"
#include "worker/collective/gloo/catch_gloo.h"
#include "worker/collective/gloo/proof.h"

namespace troupe {
namespace {

// Apart from those of operations, whose kinds are small numbers, and of
// notices.
constexpr uint64_t kNonceSlot = ~uint64_t{1};
constexpr uint64_t kAnswerSlot = ~uint64_t{2};

// One message each way between this rank and a peer.
class Swap {
 public:
  Swap(::gloo::Context& context, int peer)
      : peer_(peer),
        send_(context.createUnboundBuffer(ours_, sizeof(ours_))),
        receive_(context.createUnboundBuffer(theirs_, sizeof(theirs_))) {}

  absl::Status Post(const std::string& bytes, uint64_t slot) {
    bytes.copy(ours_, sizeof(ours_));
    return CatchGloo([&] {
      receive_->recv(peer_, slot);
      send_->send(peer_, slot);
    });
  }

  // OK as well where it was interrupted.
  absl::Status Wait(absl::Time deadline) {
    const auto left = [deadline] {
      const int64_t ms = absl::ToInt64Milliseconds(deadline - SteadyNow());
      return std::chrono::milliseconds(std::max<int64_t>(ms, 1));
    };
    return CatchGloo([&] {
      receive_->waitRecv(left());
      send_->waitSend(left());
    });
  }

  // From any thread.
  void Interrupt() {
    receive_->abortWaitRecv();
    send_->abortWaitSend();
  }

  std::string theirs() const { return std::string(theirs_, sizeof(theirs_)); }

 private:
  const int peer_;
  char ours_[Proof::kBytes] = {};
  char theirs_[Proof::kBytes] = {};
  std::unique_ptr<::gloo::transport::UnboundBuffer> send_;
  std::unique_ptr<::gloo::transport::UnboundBuffer> receive_;
};

// A peer, with what both say.
struct Member {
  Member(::gloo::Context& context, const Proof::Places& places,
         const std::string& secret)
      : peer(places.peer),
        proof(places, secret),
        nonces(context, places.peer),
        answers(context, places.peer) {}

  const int peer;
  const Proof proof;
  Swap nonces;
  Swap answers;
};
using Members = std::vector<std::unique_ptr<Member>>;

// Gloo says it in words only.
bool HasHungUp(absl::string_view why) {
  return absl::StrContains(why, "Connection closed by peer") ||
         absl::StrContains(why, "Connection reset by peer") ||
         absl::StrContains(why, "Broken pipe");
}

// The context's of the group, for a rank that could not be proven.
absl::Status NotProven(const CommunicatorSeat& seat, int peer,
                       absl::string_view why) {
  const std::string who = absl::StrCat("rank ", seat.group.ranks[peer]);
  // A member that ended while the group met is no stranger, and its job says
  // why it ended.
  if (!HasHungUp(why)) {
    TellOfRefusedPeer(Door::kRanks,
                      absl::StrCat("in the place of ", who, " of group ",
                                   seat.group.name, ": ", why));
  }
  return absl::UnavailableError(absl::StrCat(who, " cannot be reached: ", why));
}

absl::Status AbortOf(const CommunicatorSeat& seat) {
  return seat.abort == nullptr ? absl::OkStatus() : seat.abort->status();
}

// What an abort breaks fails in many ways.
absl::Status Post(Swap& swap, const std::string& bytes, uint64_t slot, int peer,
                  const CommunicatorSeat& seat) {
  const absl::Status posted = swap.Post(bytes, slot);
  RETURN_IF_ERROR(AbortOf(seat));
  return posted.ok() ? posted : NotProven(seat, peer, posted.message());
}

absl::Status Await(Swap& swap, int peer, const CommunicatorSeat& seat,
                   absl::Time deadline) {
  const absl::Status waited = swap.Wait(deadline);
  RETURN_IF_ERROR(AbortOf(seat));
  if (waited.ok()) return waited;
  return NotProven(
      seat, peer,
      absl::StrCat("it has not proved that it belongs to the job: ",
                   waited.message()));
}

absl::Status Prove(Members& members, const CommunicatorSeat& seat,
                   absl::Time deadline) {
  for (const auto& member : members) {
    RETURN_IF_ERROR(Post(member->nonces, member->proof.nonce(), kNonceSlot,
                         member->peer, seat));
  }
  for (const auto& member : members) {
    RETURN_IF_ERROR(Await(member->nonces, member->peer, seat, deadline));
    RETURN_IF_ERROR(Post(member->answers,
                         member->proof.Answer(member->nonces.theirs()),
                         kAnswerSlot, member->peer, seat));
  }
  for (const auto& member : members) {
    RETURN_IF_ERROR(Await(member->answers, member->peer, seat, deadline));
    if (member->proof.IsProvenBy(member->answers.theirs(),
                                 member->nonces.theirs())) {
      continue;
    }
    return NotProven(seat, member->peer,
                     "what is connected in its place does not know the secret "
                     "of this attempt of the job");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ProveMembers(::gloo::Context& context,
                          const CommunicatorSeat& seat,
                          const std::string& secret, absl::Time deadline) {
  Members members;
  for (int peer = 0; peer < context.size; ++peer) {
    if (peer == context.rank) continue;
    members.push_back(std::make_unique<Member>(
        context,
        Proof::Places{
            .group = seat.group.name, .rank = context.rank, .peer = peer},
        secret));
  }
  const JoinAbort::Interrupt interrupt(seat.abort, [&](const absl::Status&) {
    for (const auto& member : members) {
      member->nonces.Interrupt();
      member->answers.Interrupt();
    }
  });
  return Prove(members, seat, std::min(deadline, SteadyNow() + kProofMax));
}

}  // namespace troupe
