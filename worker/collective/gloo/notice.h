// The last words of a rank to its peers, sent once, before it closes its
// connections: why it goes. They let every member name the same culprit, where
// the bare end of a connection would blame the messenger.
#ifndef TROUPE_WORKER_COLLECTIVE_GLOO_NOTICE_H_
#define TROUPE_WORKER_COLLECTIVE_GLOO_NOTICE_H_

#include <gloo/transport/unbound_buffer.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "worker/collective/gloo/mesh.h"
#include "worker/collective/verdict.h"

namespace troupe {

// On the wire as it lies in memory: members of a group are of one architecture.
struct Notice {
  enum Kind : int32_t {
    kLeft = 1,     // destroyed its communicator, all well
    kAborted = 2,  // Abort() was called; text says why
    kLost = 3,     // `peer` is dead
    kWaiting = 4,  // gave up waiting for `peer`
  };
  static constexpr uint64_t kComplete = 0x74726f7570652121;

  int32_t kind = 0;
  int32_t peer = -1;  // index in the group
  char text[176] = {};
  // Last, so that it is there only when all the rest is.
  uint64_t complete = 0;
};

// The notices of all peers, and ours. One thread at a time.
class Notices {
 public:
  // Posts a receive for each peer. Borrows the mesh.
  explicit Notices(GlooMesh& mesh);

  // Looks what came since the last time; does not wait.
  void Poll();
  // Whether an operation cannot go on: a peer is dead, or its notice says more
  // than that it left: a member that waits for that one hears so from Gloo.
  // REQUIRES Poll.
  bool Bad() const;

  // The member to blame where this rank waits for `peer`, as far as is known
  // now; nothing while the last of the chain may still answer. REQUIRES Poll.
  std::optional<Verdict> Blame(int peer) const;
  // The same when there is no time left: the last of the chain did not come.
  Verdict BlameNow(int peer) const;

  // Sends our notice to all that are not dead: once at most.
  void Say(Notice::Kind kind, int peer, absl::string_view text);
  // Waits shortly until it is on its way to all but `culprit` (-1: to all);
  // and, where it says more than that we leave, until they have said theirs:
  // what a peer has not read yet when it writes to a closed connection is lost,
  // and it would take the messenger for dead.
  void Flush(int culprit);

 private:
  struct Peer {
    Notice notice;  // Gloo's thread writes it
    std::unique_ptr<::gloo::transport::UnboundBuffer> receive;
    std::unique_ptr<::gloo::transport::UnboundBuffer> send;
    bool said = false;  // `notice` is complete
    bool dead = false;  // the connection ended without one
  };
  static void PollPeer(Peer& peer);
  bool AllHaveSpoken(int culprit) const;
  int EndOfChain(int peer) const;
  Verdict Lost(int peer) const;

  GlooMesh& mesh_;
  const int rank_;
  Notice ours_;
  std::vector<std::unique_ptr<Peer>> peers_;  // null for this rank
};

}  // namespace troupe

#endif  // TROUPE_WORKER_COLLECTIVE_GLOO_NOTICE_H_
