// Ends of the conversation between worker and scheduler that are no such
// program: what a daemon hears from strangers. No message's type shows here, so
// that a test can have this beside the programs that it runs.
#ifndef TROUPE_TESTS_CLUSTER_IMPOSTOR_H_
#define TROUPE_TESTS_CLUSTER_IMPOSTOR_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "proto/trust/peer_trust.h"

namespace troupe {

// A worker named "impostor", with memory for a small job. Calls have a minute.
class Impostor {
 public:
  // Registers with the scheduler at HOST:PORT.
  Impostor(const std::string& scheduler, int protocol_version,
           const PeerTrust& trust);
  ~Impostor();

  // Reads what the scheduler says to the registration.
  absl::Status AwaitRegistration();
  // Reads on until a rank of a job is given to it; the job's number. 0: the
  // conversation is over.
  int64_t AwaitJob();
  // Reports of jobs that are not its own, and a second registration.
  void TalkNonsense();
  // Ends the conversation as a process that is killed does.
  void Vanish();

 private:
  struct Session;
  const std::unique_ptr<Session> session_;
};

// A scheduler that takes no worker but those of protocol version 99.
class NewerScheduler {
 public:
  NewerScheduler();
  ~NewerScheduler();
  const std::string& address() const;  // HOST:PORT

 private:
  struct Server;
  const std::unique_ptr<Server> server_;
};

}  // namespace troupe

#endif  // TROUPE_TESTS_CLUSTER_IMPOSTOR_H_
