// Connections of HTTP while nothing is computed for them: until their request
// is there, and until they have taken its answer. One that says nothing, stops
// in the middle of a request or does not read costs a file and its bytes here,
// not a thread; so peers that wait cannot keep out those that ask. A peer that
// asks again before it has its answer is answered in turn.
//
// One thread reads the heads of requests of all connections; what is answered
// to a whole one is made on one of a few threads. What of it the connection
// does not take at once the first thread sends as the other side reads; then it
// comes back for the next request where the answer says so. Beyond a number of
// connections, or kUnsentBytesMax of answers, those that have been here the
// longest make room.
#ifndef TROUPE_SCHEDULER_STATUS_LOBBY_H_
#define TROUPE_SCHEDULER_STATUS_LOBBY_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "proto/trust/accepted_wire.h"

namespace troupe {

// What is sent, and whether the connection is closed after it.
struct HeadAnswer {
  std::string bytes;
  bool last = false;
};

class Lobby {
 public:
  // To everything up to the empty line, from this address ("10.0.0.1:77").
  // Called on several threads at once.
  using Answer = std::function<HeadAnswer(const std::string& head,
                                          const std::string& peer)>;

  // Holds at most connections_max connections.
  Lobby(Answer answer, size_t connections_max);
  // Closes all, when the answers under way have been made.
  ~Lobby();
  Lobby(const Lobby&) = delete;
  Lobby& operator=(const Lobby&) = delete;

  // Thread-safe; does not wait.
  void Admit(std::unique_ptr<AcceptedWire> wire);

  static constexpr int kThreads = 8;
  static constexpr size_t kHeadBytesMax = 16 << 10;
  static constexpr size_t kUnsentBytesMax = 64 << 20;
  // For a whole head, from the connection or the answer before.
  static constexpr absl::Duration kHeadMax = absl::Seconds(10);
  // For an answer to be read.
  static constexpr absl::Duration kAnswerMax = absl::Seconds(20);

 private:
  struct Guest {
    std::unique_ptr<AcceptedWire> wire;
    absl::Time until;
    std::string head;   // what has come
    HeadAnswer answer;  // what is left of it; empty: it is read from
    size_t sent = 0;    // of the answer's bytes
    bool reads() const { return answer.bytes.empty(); }
  };

  void Watch();
  void TakeArrivals() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // False: the guest has left the lobby.
  bool Read(Guest& guest);
  // Sends what the socket takes. False: the guest has left the lobby.
  bool Send(Guest& guest);
  // Where a whole head has come, from byte `from` on, it is to be answered, and
  // the guest has left the lobby.
  bool HasAsked(Guest& guest, size_t from);
  void MakeRoom() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Serve();
  void Wake() const;

  const Answer answer_;
  const size_t connections_max_;
  const int wake_;           // an eventfd
  std::list<Guest> guests_;  // the watch's, the first to come in front

  absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<Guest> arrivals_ ABSL_GUARDED_BY(mutex_);
  struct Request {
    std::unique_ptr<AcceptedWire> wire;
    std::string head;
    std::string rest;  // what has come behind it
  };
  std::deque<Request> ready_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_;
};

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_STATUS_LOBBY_H_
