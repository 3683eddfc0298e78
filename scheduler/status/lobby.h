// Connections of HTTP until their request is there. A connection that says
// nothing, or stops in the middle of a request, costs a file and a few bytes
// here, not a thread; so those who wait cannot keep out those who ask.
//
// One thread reads the heads of requests of all connections; whoever has sent a
// whole one is answered on one of a few threads, and comes back for the next
// where the answer says so. Beyond kConnectionsMax the one that has been silent
// the longest makes room.
#ifndef TROUPE_SCHEDULER_STATUS_LOBBY_H_
#define TROUPE_SCHEDULER_STATUS_LOBBY_H_

#include <poll.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace troupe {

// Everything up to the empty line, and whether anything came after it.
struct RequestHead {
  std::string text;
  bool more = false;
};

class Lobby {
 public:
  // Answers over the socket, which does not block; false: it is to be closed.
  using Answer = std::function<bool(int socket, const RequestHead& head)>;

  explicit Lobby(Answer answer);
  // Closes those that wait, after the answers under way.
  ~Lobby();
  Lobby(const Lobby&) = delete;
  Lobby& operator=(const Lobby&) = delete;

  // Takes the socket over. Thread-safe; does not wait.
  void Admit(int socket);

  static constexpr int kThreads = 8;
  static constexpr size_t kConnectionsMax = 512;
  static constexpr size_t kHeadBytesMax = 16 << 10;
  // For a whole head, from the connection or the answer before.
  static constexpr absl::Duration kHeadMax = absl::Seconds(10);

 private:
  struct Guest {
    int socket = -1;
    std::string head;  // what has come
    absl::Time until;
  };

  void Watch();
  void TakeArrivals() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // False: the guest has left the lobby.
  bool Read(Guest& guest);
  void Serve();
  void Wake() const;

  const Answer answer_;
  const int wake_;           // an eventfd
  std::list<Guest> guests_;  // the watch's, who came first in front

  absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<int> arrivals_ ABSL_GUARDED_BY(mutex_);
  std::deque<std::pair<int, RequestHead>> ready_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_;
};

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_STATUS_LOBBY_H_
