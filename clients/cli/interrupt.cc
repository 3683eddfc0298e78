#include "clients/cli/interrupt.h"

#include <pthread.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "proto/base/check.h"

namespace troupe {
namespace {

// Without those that are ignored: blocked, they would be kept for us.
sigset_t Signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action;
    CHECK(sigaction(signal, nullptr, &action) == 0);
    if (action.sa_handler != SIG_IGN) sigaddset(&signals, signal);
  }
  return signals;
}

}  // namespace

Interrupt::Interrupt() : signals_(Signals()) {
  pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
  fd_ = signalfd(-1, &signals_, SFD_NONBLOCK | SFD_CLOEXEC);
  CHECK(fd_ >= 0);
}

Interrupt::~Interrupt() {
  Arrived();  // takes what is pending, so that unblocking does not end us
  close(fd_);
  pthread_sigmask(SIG_UNBLOCK, &signals_, nullptr);
}

void Interrupt::Forget() {
  Arrived();
  arrived_ = false;
}

bool Interrupt::Arrived() {
  signalfd_siginfo info;
  while (read(fd_, &info, sizeof(info)) == sizeof(info)) arrived_ = true;
  return arrived_;
}

}  // namespace troupe
