// Turns SIGTERM and SIGINT into calls on a thread of its own, where anything is
// allowed. Make one first thing in main, before any other thread: they inherit
// that the signals are blocked.
#ifndef TROUPE_WORKER_SERVICE_SIGNAL_WATCH_H_
#define TROUPE_WORKER_SERVICE_SIGNAL_WATCH_H_

#include <functional>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace troupe {

class SignalWatch {
 public:
  // Until OnSignal is called a signal ends the process at once, with 128 + its
  // number, as it would without a watch. A second signal always does.
  SignalWatch();
  // Signals stay blocked.
  ~SignalWatch();
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

  // From now on the first signal calls this with its name, "SIGTERM". Empty:
  // as before.
  void OnSignal(std::function<void(const std::string& name)> handler);

 private:
  void Watch();

  int signals_ = -1;  // signalfd
  int end_ = -1;      // eventfd: the destructor's word
  absl::Mutex mutex_;
  std::function<void(const std::string&)> handler_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_SERVICE_SIGNAL_WATCH_H_
