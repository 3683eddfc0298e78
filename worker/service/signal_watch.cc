#include "worker/service/signal_watch.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "proto/base/check.h"
#include "proto/base/log.h"

namespace troupe {

SignalWatch::SignalWatch() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, nullptr), 0);
  signals_ = signalfd(-1, &set, SFD_CLOEXEC);
  end_ = eventfd(0, EFD_CLOEXEC);
  CHECK(signals_ >= 0 && end_ >= 0) << "errno " << errno;
  thread_ = std::thread([this] { Watch(); });
}

SignalWatch::~SignalWatch() {
  const uint64_t one = 1;
  CHECK_EQ(write(end_, &one, sizeof(one)), sizeof(one));
  thread_.join();
  close(signals_);
  close(end_);
}

void SignalWatch::OnSignal(
    std::function<void(const std::string& name)> handler) {
  absl::MutexLock lock(&mutex_);
  handler_ = std::move(handler);
}

void SignalWatch::Watch() {
  while (true) {
    pollfd files[] = {{.fd = signals_, .events = POLLIN},
                      {.fd = end_, .events = POLLIN}};
    if (poll(files, 2, -1) < 0) {
      CHECK_EQ(errno, EINTR);
      continue;
    }
    if (files[1].revents != 0) return;
    signalfd_siginfo info;
    if (read(signals_, &info, sizeof(info)) != sizeof(info)) continue;
    std::function<void(const std::string&)> handler;
    {
      absl::MutexLock lock(&mutex_);
      handler = std::exchange(handler_, nullptr);
    }
    if (!handler) {
      FlushLog();
      _exit(128 + static_cast<int>(info.ssi_signo));
    }
    handler(info.ssi_signo == SIGINT ? "SIGINT" : "SIGTERM");
  }
}

}  // namespace troupe
