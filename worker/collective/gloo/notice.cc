#include "worker/collective/gloo/notice.h"

#include <atomic>
#include <chrono>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "proto/base/steady_time.h"

namespace troupe {
namespace {

constexpr uint64_t kNoticeSlot = ~uint64_t{0};
// How long peers have to say their last words too. Those in an operation look
// around every 20 ms; the others say none, but read ours meanwhile.
constexpr absl::Duration kLinger = absl::Milliseconds(500);

}  // namespace

Notices::Notices(GlooMesh& mesh) : mesh_(mesh), rank_(mesh.rank) {
  peers_.resize(mesh.size);
  for (int i = 0; i < mesh.size; ++i) {
    if (i == rank_) continue;
    peers_[i] = std::make_unique<Peer>();
    Peer& peer = *peers_[i];
    peer.dead = !CatchGloo([&] {
                   peer.receive =
                       mesh.createUnboundBuffer(&peer.notice, sizeof(Notice));
                   peer.receive->recv(i, kNoticeSlot);
                 }).ok();
  }
}

void Notices::Poll() {
  for (const auto& peer : peers_) {
    if (peer != nullptr && !peer->said && !peer->dead) PollPeer(*peer);
  }
}

// Gloo has no test for "is it there?", so: a notice that is complete ends with
// its mark; otherwise a wait that is aborted beforehand returns at once, or
// throws where the connection ended.
void Notices::PollPeer(Peer& peer) {
  const auto marked = [&peer] {
    return std::atomic_ref<uint64_t>(peer.notice.complete)
               .load(std::memory_order_acquire) == Notice::kComplete;
  };
  if (!marked()) {
    peer.receive->abortWaitRecv();
    const absl::Status open = CatchGloo(
        [&] { peer.receive->waitRecv(std::chrono::milliseconds(1)); });
    if (!marked()) {
      peer.dead = !open.ok();
      return;
    }
  }
  // It completes in this moment; waiting also makes all of it visible here.
  peer.said =
      CatchGloo([&] { peer.receive->waitRecv(std::chrono::seconds(1)); }).ok();
  peer.dead = !peer.said;
}

bool Notices::Bad() const {
  for (const auto& peer : peers_) {
    if (peer == nullptr) continue;
    if (peer->dead) return true;
    if (peer->said && peer->notice.kind != Notice::kLeft) return true;
  }
  return false;
}

// Follows "waits for" from peer to peer: the last one says something else,
// nothing, or closes a circle.
int Notices::EndOfChain(int peer) const {
  for (int steps = 0; steps < mesh_.size; ++steps) {
    if (peer == rank_) return peer;
    const Peer& now = *peers_[peer];
    if (!now.said || now.notice.kind != Notice::kWaiting) return peer;
    peer = now.notice.peer;
  }
  return peer;
}

Verdict Notices::Lost(int peer) const {
  const bool left = peers_[peer] != nullptr && peers_[peer]->said &&
                    peers_[peer]->notice.kind == Notice::kLeft;
  return {absl::StatusCode::kUnavailable, peer,
          left ? "closed its communicator" : "died, or its connection broke"};
}

std::optional<Verdict> Notices::Blame(int peer) const {
  using absl::StatusCode;
  for (int i = 0; i < mesh_.size; ++i) {
    if (peers_[i] != nullptr && peers_[i]->dead) return Lost(i);
  }
  for (int i = 0; i < mesh_.size; ++i) {
    if (peers_[i] == nullptr || !peers_[i]->said) continue;
    const Notice& notice = peers_[i]->notice;
    if (notice.kind == Notice::kLost) return Lost(notice.peer);
    if (notice.kind == Notice::kAborted) {
      return Verdict{StatusCode::kUnavailable, i,
                     absl::StrCat("aborted: ", notice.text)};
    }
  }
  const int last = EndOfChain(peer);
  if (last == rank_) {
    return Verdict{StatusCode::kDeadlineExceeded, peer,
                   "gave up waiting for this rank, which came too late or "
                   "called another operation"};
  }
  if (!peers_[last]->said) return std::nullopt;
  if (peers_[last]->notice.kind == Notice::kLeft) return Lost(last);
  return Verdict{StatusCode::kDeadlineExceeded, last,
                 "came too late or called another operation"};
}

Verdict Notices::BlameNow(int peer) const {
  if (std::optional<Verdict> verdict = Blame(peer)) return *verdict;
  return {absl::StatusCode::kDeadlineExceeded, EndOfChain(peer),
          "did not come"};
}

void Notices::Say(Notice::Kind kind, int about, absl::string_view text) {
  if (ours_.complete != 0) return;
  ours_.kind = kind;
  ours_.peer = about;
  const absl::string_view kept = text.substr(0, sizeof(ours_.text) - 1);
  std::memcpy(ours_.text, kept.data(), kept.size());
  ours_.complete = Notice::kComplete;
  for (int i = 0; i < mesh_.size; ++i) {
    if (peers_[i] == nullptr || peers_[i]->dead) continue;
    Peer& peer = *peers_[i];
    const absl::Status sent = CatchGloo([&] {
      peer.send = mesh_.createUnboundBuffer(&ours_, sizeof(ours_));
      peer.send->send(i, kNoticeSlot);
    });
    if (!sent.ok()) peer.send = nullptr;  // gone: it needs no notice
  }
}

void Notices::Flush(int culprit) {
  for (int i = 0; i < mesh_.size; ++i) {
    if (peers_[i] == nullptr || i == culprit || !peers_[i]->send) continue;
    // A notice that cannot leave is one for a peer that is gone too.
    CatchGloo([&] {
      peers_[i]->send->waitSend(std::chrono::milliseconds(100));
    }).IgnoreError();
  }
  if (ours_.kind == Notice::kLeft) return;
  const absl::Time end = SteadyNow() + kLinger;
  for (Poll(); !AllHaveSpoken(culprit) && SteadyNow() < end; Poll()) {
    absl::SleepFor(absl::Milliseconds(1));
  }
}

bool Notices::AllHaveSpoken(int culprit) const {
  for (int i = 0; i < mesh_.size; ++i) {
    if (peers_[i] == nullptr || i == culprit) continue;
    if (!peers_[i]->said && !peers_[i]->dead) return false;
  }
  return true;
}

}  // namespace troupe
