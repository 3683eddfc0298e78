// Where a test runs as root: the calling thread's access to files is that of a
// user who owns nothing, while this lives. Elsewhere it is as it was. Folders
// that are to be reached meanwhile lie in kEverybodysDirectory: a test's own may
// lie in a home that is closed to others.
#ifndef TROUPE_TESTS_STORAGE_DISK_AS_NOBODY_H_
#define TROUPE_TESTS_STORAGE_DISK_AS_NOBODY_H_

#include <sys/fsuid.h>
#include <unistd.h>

namespace troupe {

inline constexpr char kEverybodysDirectory[] = "/tmp";

class AsNobody {
 public:
  AsNobody() {
    if (geteuid() == 0) setfsuid(65534);
  }
  ~AsNobody() { setfsuid(geteuid()); }
  AsNobody(const AsNobody&) = delete;
  AsNobody& operator=(const AsNobody&) = delete;
};

}  // namespace troupe

#endif  // TROUPE_TESTS_STORAGE_DISK_AS_NOBODY_H_
