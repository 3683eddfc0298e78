// The rule of a fake clock that real threads move: it advances for one of them
// at a time, and for the next one only when the one before has had its turn,
// that is, has come back after it has reacted to the time that passed (noted
// its bytes, heard that it is to stop). On a busy machine a thread that was
// just told may not run for long; without the rule the others would take the
// clock past every deadline meanwhile.
//
//   turns.Take();      // waits for its holder, in the order of asking
//   clock.Advance(by);
//   ...                // the thread reacts
//   turns.GiveBack();
//
// Between the two the thread must not wait for another one that needs a turn.
#ifndef TROUPE_TESTS_FAULTS_TURNS_H_
#define TROUPE_TESTS_FAULTS_TURNS_H_

#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace troupe {

class Turns {
 public:
  void Take() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    const auto is_mine = [this, mine = asked_++]() ABSL_SHARED_LOCKS_REQUIRED(
                             mutex_) { return given_back_ == mine; };
    mutex_.Await(absl::Condition(&is_mine));
  }

  // REQUIRES: the caller has taken it.
  void GiveBack() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    ++given_back_;
  }

 private:
  absl::Mutex mutex_;
  int64_t asked_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t given_back_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace troupe

#endif  // TROUPE_TESTS_FAULTS_TURNS_H_
