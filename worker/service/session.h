// One conversation with the scheduler: connect, register, then messages both
// ways until one side ends it. gRPC's stream stays behind this class.
//
//   ASSIGN_OR_RETURN(auto session, Session::Open(options));
//   while (true) {
//     absl::StatusOr<SchedulerMessage> message = session->Receive();
//     if (!message.ok()) break;   // the session is over
//     ...
//   }
//
// Messages are sent by a thread of the session's own, from a bounded queue, and
// so are heartbeats, so that neither training nor a slow network delays them.
//
// A scheduler that is silent is not gone: it may be paused (SIGSTOP), and
// forgives the workers the time that it did not run. So a session bears
// kSilenceMax, and what is to be said meanwhile waits. Its machine's kernel
// answers all the same (peer_silence.h): where that says nothing either for
// SessionOptions.unanswered_max, the machine lost its power or its network, and
// the session is over. A machine that is suspended looks like one that is gone.
#ifndef TROUPE_WORKER_SERVICE_SESSION_H_
#define TROUPE_WORKER_SERVICE_SESSION_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/come_back.h"
#include "proto/trust/peer_trust.h"
#include "proto/worker.pb.h"

namespace troupe {

struct SessionOptions {
  std::string scheduler;  // HOST:PORT
  PeerTrust trust;        // how the two know each other
  Register registration;
  // What a heartbeat says; asked by a thread of the session, which every
  // message waits for. Must not call the session.
  std::function<Heartbeat()> heartbeat;
  absl::Duration connect_timeout = kConnectMax;
  absl::Duration register_timeout = kRegisterMax;
  // For how long the scheduler's machine may acknowledge nothing. Within it the
  // kernel sends what is lost eight times, last after 51 s.
  absl::Duration unanswered_max = absl::Minutes(1);
};

class Session {
 public:
  // The connection is given up when the scheduler, whose machine answers, has
  // not answered for this long.
  static constexpr absl::Duration kSilenceMax = absl::Minutes(10);
  // Of what waits to be sent: many thousand reports of steps.
  static constexpr size_t kQueueBytesMax = 64 << 20;

  // Returns once the scheduler has answered Registered. Unavailable: it cannot
  // be reached, is not believed, or went away; AlreadyExists,
  // FailedPrecondition, PermissionDenied: it refused. Or the errors of
  // CheckTrust.
  static absl::StatusOr<std::unique_ptr<Session>> Open(
      const SessionOptions& options);

  virtual ~Session() = default;

  virtual const Registered& registered() const = 0;

  // Queues a message; waits while the queue is full. Unavailable once the
  // session is over, or where the queue stays full for kSilenceMax, which ends
  // it. Thread-safe.
  virtual absl::Status Send(WorkerMessage message) = 0;

  // The next message, or why the session is over. One thread.
  virtual absl::StatusOr<SchedulerMessage> Receive() = 0;

  // Sends what is queued and a Goodbye, then ends the session, so that Receive
  // returns, which another thread must call meanwhile: after `timeout` this
  // waits no longer for the scheduler to have read it. Thread-safe.
  virtual void Close(const std::string& reason, absl::Duration timeout) = 0;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_SERVICE_SESSION_H_
