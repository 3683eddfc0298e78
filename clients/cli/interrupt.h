// Ctrl-C (SIGINT), SIGTERM and a terminal that is closed (SIGHUP) as a question
// that a command asks, instead of a sudden end: so that `submit --watch` can
// say how to come back, and `up` can take down what it has started. Those that
// our parent process had ignored (nohup, a shell's `&`) stay ignored.
#ifndef TROUPE_CLIENTS_CLI_INTERRUPT_H_
#define TROUPE_CLIENTS_CLI_INTERRUPT_H_

#include <signal.h>

namespace troupe {

// While one lives the signals end nothing. Make it before anything starts a
// thread (a gRPC channel does): threads that exist already would still be ended
// by the signals. At most one at a time.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  // Whether a signal has come since the beginning, or since Forget.
  bool Arrived();
  // Those that have come are dealt with; the next is another matter.
  void Forget();

 private:
  const sigset_t signals_;
  int fd_;
  bool arrived_ = false;
};

}  // namespace troupe

#endif  // TROUPE_CLIENTS_CLI_INTERRUPT_H_
