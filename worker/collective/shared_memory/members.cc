#include "worker/collective/shared_memory/members.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "proto/base/steady_time.h"

namespace troupe {

Members::Members(const SegmentMap& map, int rank) : map_(map), rank_(rank) {
  for (int peer = 0; peer < map.ranks(); ++peer) {
    const int process = map.state(peer).process.load();
    // -1, which poll ignores, for our own process, and for one that died in
    // this moment: it will be missed soon.
    const int file =
        process == getpid()
            ? -1
            : static_cast<int>(syscall(SYS_pidfd_open, process, 0));
    processes_.push_back({.fd = file, .events = POLLIN});
  }
}

Members::~Members() {
  Say(MemberState::kLeft, rank_, "");
  for (const pollfd& process : processes_) {
    if (process.fd >= 0) close(process.fd);
  }
}

void Members::Say(MemberState::Notice notice, int about,
                  absl::string_view text) {
  {
    absl::MutexLock lock(&mutex_);
    if (said_) return;
    said_ = true;
    MemberState& ours = map_.state(rank_);
    ours.about = about;
    ours.text[text.copy(ours.text, sizeof(ours.text) - 1)] = '\0';
    ours.notice.store(notice);
  }
  map_.gate().turn.Wake();
  for (int peer = 0; peer < map_.ranks(); ++peer) {
    map_.state(peer).news.Wake();
    if (peer == rank_) continue;
    for (Channel* channel :
         {&map_.channel({rank_, peer}), &map_.channel({peer, rank_})}) {
      channel->written.Wake();
      channel->read.Wake();
    }
  }
}

bool Members::HasLeft(int peer) const {
  return map_.state(peer).notice.load() == MemberState::kLeft;
}

bool Members::IsDead(int peer) { return processes_[peer].revents != 0; }

Verdict Members::Lost(int peer) const {
  return {absl::StatusCode::kUnavailable, peer,
          HasLeft(peer) ? "closed its communicator" : "died"};
}

// Follows "waits for" from rank to rank, as long as the wait is a real one: the
// last waits for nobody, or closes a circle.
int Members::EndOfChain(int peer) const {
  for (int steps = 0; steps < map_.ranks() && peer != rank_; ++steps) {
    const MemberState& state = map_.state(peer);
    const int next = state.waits_for.load();
    if (next < 0 ||
        map_.counter(state.waits_at.load()).Get() != state.waits_seen.load()) {
      return peer;
    }
    peer = next;
  }
  return peer;
}

Verdict Members::Broken() const {
  using absl::StatusCode;
  const auto text = [this](int rank) {
    return absl::StrCat("aborted: ", map_.state(rank).text);
  };
  if (map_.state(rank_).notice.load() == MemberState::kAborted) {
    return {StatusCode::kCancelled, rank_, text(rank_)};
  }
  for (int peer = 0; peer < map_.ranks(); ++peer) {
    const MemberState& state = map_.state(peer);
    switch (state.notice.load()) {
      case MemberState::kLost:
        return Lost(state.about);
      case MemberState::kAborted:
        return {StatusCode::kUnavailable, peer, text(peer)};
      case MemberState::kGaveUp:
        if (state.about != rank_) {
          return {StatusCode::kDeadlineExceeded, state.about, "did not come"};
        }
        return {StatusCode::kDeadlineExceeded, peer,
                "gave up waiting for this rank, which came too late or called "
                "another operation"};
      default:
        break;
    }
  }
  return {};
}

Verdict Members::Look(absl::Span<const int> missing, absl::Time deadline,
                      absl::FunctionRef<bool()> came) {
  Verdict broken = Broken();
  if (!broken.ok()) return came() ? Verdict() : broken;
  poll(processes_.data(), processes_.size(), 0);
  for (int peer = 0; peer < map_.ranks(); ++peer) {
    const bool missed =
        std::find(missing.begin(), missing.end(), peer) != missing.end();
    // A peer that left in peace may be dead by now: that matters only to a rank
    // that misses it.
    if (HasLeft(peer) ? missed : IsDead(peer)) {
      if (came()) return {};
      // It may have gone because of a notice that came since we looked.
      broken = Broken();
      if (!broken.ok()) return broken;
      Say(MemberState::kLost, peer, "");
      return Lost(peer);
    }
  }
  if (SteadyNow() < deadline || came()) return {};
  const int last = EndOfChain(missing[0]);
  Say(MemberState::kGaveUp, last == rank_ ? missing[0] : last, "");
  if (last != rank_) {
    return {absl::StatusCode::kDeadlineExceeded, last, "did not come"};
  }
  return {absl::StatusCode::kDeadlineExceeded, missing[0],
          "waits for this rank: they called different operations"};
}

}  // namespace troupe
