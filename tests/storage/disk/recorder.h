// Writes down what the process does to the files below a directory: the calls
// that change them (open, pwrite, fsync, rename, ...) are defined by the test
// itself, so that no code can go past it but io_uring and the C library's own.
#ifndef TROUPE_TESTS_STORAGE_DISK_RECORDER_H_
#define TROUPE_TESTS_STORAGE_DISK_RECORDER_H_

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "tests/storage/disk/power_loss.h"

namespace troupe {

// One call that was made.
struct Change {
  enum Kind { kWrite, kResize, kName, kSync };
  Kind kind;
  int object = 0;       // a file, or the directory whose names change
  uint64_t offset = 0;  // or the new size
  std::string bytes;
  // The directory's names that change, and what they are then; 0: none.
  std::vector<std::pair<std::string, int>> names;
  std::string text;  // the call
};

// A file or a directory.
struct DiskObject {
  bool is_directory = false;
  std::string bytes;
  std::map<std::string, int> names;
};
using DiskObjects = std::map<int, DiskObject>;
inline constexpr int kRootObject = 1;

// Files are known by their inode. Threads take mutex().
class Recorder {
 public:
  // The root itself is object kRootObject.
  void Start(const std::string& root, const RecordingOptions& options);
  void Stop();
  // Until it is called with an empty name: nothing below `root` may grow.
  void Fill(const std::string& root);

  bool Watches(const std::string& path) const;
  RecordingOptions& options() { return options_; }
  // Whether a write up to there finds the disk full.
  bool IsFull(int fd, off_t end) const;
  // What was there at the start, and each object since as it was made: empty.
  const DiskObjects& before() const { return before_; }
  const std::vector<Change>& changes() const { return changes_; }
  std::recursive_mutex& mutex() { return mutex_; }  // libstdc++ calls back

  // The object of the inode at `path`; 0: none that is known.
  int IdAt(const std::string& path) const;
  int IdOf(int fd) const;
  int Made(const std::string& path);
  void Add(Change change) { changes_.push_back(std::move(change)); }

 private:
  int Take(const std::string& path);  // what is there already

  std::recursive_mutex mutex_;
  std::string root_;
  RecordingOptions options_;
  std::string full_;
  std::map<ino_t, int> ids_;
  int next_ = kRootObject;
  DiskObjects before_;
  std::vector<Change> changes_;
};

// The one that the calls of this process are written to.
Recorder& TheRecorder();

}  // namespace troupe

#endif  // TROUPE_TESTS_STORAGE_DISK_RECORDER_H_
