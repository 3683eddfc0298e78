// Marks a stretch of a thread that others wait for, such as an event under the
// lock of the scheduler's core: it must not wait for a disk, nor do what takes
// as long as a job is large. What does either says so, and fails where such a
// stretch is open.
//
//   MustNotWait held;                     // the thread that holds the lock
//   CheckMayWait("a file is opened");     // the code that waits
#ifndef TROUPE_PROTO_BASE_MUST_NOT_WAIT_H_
#define TROUPE_PROTO_BASE_MUST_NOT_WAIT_H_

namespace troupe {

class MustNotWait {
 public:
  MustNotWait();
  ~MustNotWait();
  MustNotWait(const MustNotWait&) = delete;
  MustNotWait& operator=(const MustNotWait&) = delete;
};

void CheckMayWait(const char* what);

}  // namespace troupe

#endif  // TROUPE_PROTO_BASE_MUST_NOT_WAIT_H_
