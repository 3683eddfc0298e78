#include "clients/cli/interrupt.h"

#include <pthread.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "proto/base/check.h"

namespace troupe {
namespace {

sigset_t Signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGHUP);
  return signals;
}

}  // namespace

Interrupt::Interrupt() {
  const sigset_t signals = Signals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  fd_ = signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC);
  CHECK(fd_ >= 0);
}

Interrupt::~Interrupt() {
  Arrived();  // takes what is pending, so that unblocking does not end us
  close(fd_);
  const sigset_t signals = Signals();
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
}

bool Interrupt::Arrived() {
  signalfd_siginfo info;
  while (read(fd_, &info, sizeof(info)) == sizeof(info)) arrived_ = true;
  return arrived_;
}

}  // namespace troupe
