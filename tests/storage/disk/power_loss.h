// What a power loss may leave of what a process did to its files. While a
// DiskRecording lives, every call of this process that changes files below its
// root is carried out and written down (recorder.h). Afterwards it makes each
// tree that POSIX allows a machine to come up with, had it lost its power after
// any of the calls:
//
// * what was synced is there: the bytes and size of a file, the names in a
//   directory. Each needs its own fsync; that of a file says nothing about its
//   name;
// * of the rest any part, in any order: each write in two halves, each size,
//   each name made, moved or removed. Renaming and exchanging are one change.
//
//   DiskRecording recording(root);
//   ... what is tested ...
//   recording.EachOutcome([&](const CrashOutcome& crash) { EXPECT... });
#ifndef TROUPE_TESTS_STORAGE_DISK_POWER_LOSS_H_
#define TROUPE_TESTS_STORAGE_DISK_POWER_LOSS_H_

#include <functional>
#include <string>

namespace troupe {

// A tree that may be there when the machine is up again.
struct CrashOutcome {
  std::string root;       // a copy of the root, of the test's own
  bool returned = false;  // all that was tested had returned before
  std::string after;      // the last calls that were made, for messages
};

struct RecordingOptions {
  // renameat2 takes no flags: it cannot exchange two names, nor see that the
  // new one is free, as on NFS.
  bool refuse_rename_flags = false;
  // A file has one name only, as on FAT.
  bool refuse_links = false;
  // A link is made, and its request is repeated: then the name is taken, as on
  // NFS where the first answer is lost.
  bool repeat_links = false;
  // Called once, before the first name changes.
  std::function<void()> before_rename = nullptr;
};

// A disk that is full while this lives: no file below `root`, old or new, may
// grow by a call of this process. Needs no recording. One at a time.
class FullDisk {
 public:
  explicit FullDisk(const std::string& root);
  ~FullDisk();
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;
};

class DiskRecording {
 public:
  // One at a time. `root` is a directory that is there, with no link above it.
  explicit DiskRecording(const std::string& root,
                         RecordingOptions options = {});
  ~DiskRecording();

  // Ends the recording. Calls `look` with each different tree; gives back how
  // many there were. Fails the test where the calls written down do not lead to
  // what is there now: then something went past the recording.
  int EachOutcome(const std::function<void(const CrashOutcome&)>& look);

 private:
  const std::string root_;
  bool stopped_ = false;
};

}  // namespace troupe

#endif  // TROUPE_TESTS_STORAGE_DISK_POWER_LOSS_H_
